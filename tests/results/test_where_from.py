import json

import tracked_state
from handmade_experiment import COMMIT, make_experiment

from tasks.cli import main

PATH = "chat/allow_list/minilm-top_k-1"
STAGE = "evaluate@chat-allow_list-minilm-top_k-1"


def origin(capsys, name):
    capsys.readouterr()
    assert main(["where-from", name, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_cell_key_stage_and_report_name_are_one_origin(few, capsys):
    by_path = origin(capsys, PATH)
    assert by_path["name"] == PATH
    assert by_path["commit"] == COMMIT
    assert by_path["dirty"] is False
    assert by_path["again"] == f"palimpsest restore {STAGE}"
    assert by_path["measured"]["perplexity"] == 445.0
    for name in (by_path["key"], STAGE, f"perplexity/{PATH}"):
        assert origin(capsys, name) == by_path


def test_the_chain_goes_back_to_the_sources(few, capsys):
    chain = {step["stage"]: step for step in origin(capsys, PATH)["chain"]}
    assert set(chain) == {
        STAGE,
        "adapt@chat-allow_list-minilm-top_k-1",
        "fill@chat-allow_list-minilm-top_k-1",
        "mask@train-chat-allow_list",
        "corpus@chat",
        "train_filler@minilm",
        "pretrain",
        "vocabulary",
        "word_counts",
        "generic",
    }
    assert next(iter(chain)) == STAGE
    fill = chain["fill@chat-allow_list-minilm-top_k-1"]
    assert fill["parameters"]["k"] == 10
    masked = next(entry for entry in fill["inputs"] if entry["path"].startswith("data/private/masked"))
    assert masked["made_by"] == "mask/chat/allow_list"
    assert masked["agreement"] == "same"
    assert masked["keyed_hash"] == chain["mask@train-chat-allow_list"]["outputs"][masked["path"]]
    corpus = chain["corpus@chat"]["inputs"]
    assert [(entry["path"], entry["made_by"]) for entry in corpus] == [("constraints.txt", None)]
    raw = chain["mask@train-chat-allow_list"]["inputs"][0]
    assert (raw["path"], raw["agreement"]) == ("data/private/corpora/chat/train.txt", "inside")


def test_a_run_id_is_answered_from_the_store_where_it_is_of_an_earlier_state(tracked, tmp_path, monkeypatch, capsys):
    assert main(["publish"]) == 0
    by_path = origin(capsys, PATH)
    old = by_path["key"]
    run = tracked_state.runs(tracked)[old]
    assert origin(capsys, run) == {**by_path, "run_id": run}
    other = make_experiment(tmp_path / "other", k=20)
    (tracked / "mlflow.db").rename(other / "mlflow.db")
    monkeypatch.chdir(other)
    for name in (old, run):
        found = origin(capsys, name)
        assert (found["key"], found["run_id"]) == (old, run)
        assert found["parameters"]["fill.k"] == "10"
        assert found["measured"]["perplexity"] == 445.0
        assert found["again"] == f"palimpsest restore {run}"
        assert "data/private/masked/chat/train/allow_list/text.txt" not in str(found["inputs"])
        assert f"data/obfuscated/{PATH}.txt" in str(found["inputs"])
    assert main(["where-from", old]) == 0
    output = capsys.readouterr().out
    assert "a run of an earlier state" in output
    assert "fill.k" in output


def test_what_keeps_the_chain_from_being_made_again_is_said(few, capsys):
    """Uncommitted changes, a file that was made anew since, another clone, a command that was run by hand."""
    path = few / "results" / "reports" / "fill" / f"{PATH}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    changed = {**report, "outputs": dict.fromkeys(report["outputs"], "0" * 64)}
    path.write_text(json.dumps(changed | {"code": report["code"] | {"dirty": True}}), encoding="utf-8")
    assert main(["where-from", PATH]) == 0
    output = capsys.readouterr().out
    assert "CHANGED SINCE: fill@chat-allow_list-minilm-top_k-1 has made it anew" in output
    assert f"{COMMIT} with uncommitted changes" in output
    path.write_text(json.dumps({**report, "hash_key": "0123456789ab"}), encoding="utf-8")
    assert main(["where-from", PATH]) == 0
    output = capsys.readouterr().out
    assert "made by fill@chat-allow_list-minilm-top_k-1 in another clone, whose hashes have another key" in output
    assert "CHANGED SINCE" not in output
    path = few / "results" / "reports" / "perplexity" / f"{PATH}.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"dvc_stage": None}), encoding="utf-8")
    assert origin(capsys, PATH)["stage"] == STAGE


def test_unknown_names_are_one_line_with_the_nearest(tracked, capsys):
    for name, says in [
        ("chat/allow_list/minilm-topk-1", f"(did you mean '{PATH}'?)"),
        ("evaluate@chat-oracle-2", "(did you mean 'evaluate@chat-oracle-1'?)"),
        ("something", "nothing is known of 'something'; there are 4 cells"),
        ("0" * 32, "no run '00000000000000000000000000000000' in the experiment 'palimpsest'"),
        (f"{PATH}#000000000000", "no run has the key"),
    ]:
        assert main(["where-from", name]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert says in error


def test_a_run_id_without_a_store_makes_none(few, capsys):
    assert main(["where-from", "0" * 32]) == 1
    assert "there is no MLflow store" in capsys.readouterr().err
    assert not (few / "mlflow.db").exists()
