import json

import pytest
import tracked_state
from handmade_experiment import COMMIT, make_experiment

from tasks.cli import main
from tasks.results.origin.where_from_command import resolve

PATH = "chat/allow_list/minilm-top_k-1"
STAGE = "evaluate@chat-allow_list-minilm-top_k-1"


def test_cell_key_stage_and_report_name_are_one_origin(few, capsys):
    by_path = resolve(PATH)
    assert by_path["name"] == PATH
    assert by_path["commit"] == COMMIT
    assert by_path["dirty"] is False
    assert by_path["again"] == f"palimpsest restore {STAGE}"
    assert by_path["measured"]["perplexity"] == 445.0
    for name in (by_path["key"], STAGE, f"perplexity/{PATH}"):
        assert resolve(name) == by_path


def test_the_chain_goes_back_to_the_sources(few, capsys):
    chain = {step["stage"]: step for step in resolve(PATH)["chain"]}
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


def test_the_chain_follows_a_folder_above_several_outputs(few, capsys):
    """Evaluation reads a folder; each technique's own stage wrote one part of it."""
    folder, made = "data/private/masked/chat/test", []
    mask = json.loads((few / "results/reports/mask/chat/allow_list.json").read_text(encoding="utf-8"))
    for technique in ("allow_list", "entity_tagger"):
        made.append(f"mask@test-chat-{technique}")
        text = f"{folder}/{technique}/text.txt"
        report = {**mask, "dvc_stage": made[-1], "inputs": {}, "outputs": {text: "0" * 64}}
        path = few / f"results/reports/mask_test/chat/{technique}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report), encoding="utf-8")
    path = few / "results/reports/perplexity" / f"{PATH}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    report["inputs"][folder] = "1" * 64
    path.write_text(json.dumps(report), encoding="utf-8")
    assert set(made) < {step["stage"] for step in resolve(PATH)["chain"]}
    assert main(["where-from", PATH]) == 0
    output = capsys.readouterr().out
    assert f"from {folder} (keyed hash 111111111111…), with files made by {made[0]}\n" in output
    assert f"from {folder} (keyed hash 111111111111…), a source" not in output


def test_a_run_id_is_found_in_the_store(tracked, capsys):
    assert main(["publish"]) == 0
    by_path = resolve(PATH)
    run = tracked_state.runs(tracked)[by_path["key"]]
    assert resolve(run) == {**by_path, "run_id": run}


def test_a_run_of_an_earlier_state_is_answered_from_the_store(tracked, tmp_path, monkeypatch, capsys):
    assert main(["publish"]) == 0
    old = resolve(PATH)["key"]
    run = tracked_state.runs(tracked)[old]
    other = make_experiment(tmp_path / "other", k=20)
    (tracked / "mlflow.db").rename(other / "mlflow.db")
    monkeypatch.chdir(other)
    for name in (old, run):
        found = resolve(name)
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


def test_the_text_says_what_a_reader_needs(few, capsys):
    assert main(["where-from", PATH]) == 0
    output = capsys.readouterr().out
    assert output.startswith(f"{PATH}#")
    for part in (
        f"palimpsest restore {STAGE}",
        "perplexity",
        "language_model.adaptation.epochs",
        "from constraints.txt (keyed hash",
        "a source",
        "made by mask@train-chat-allow_list",
        "in a folder made by corpus@chat",
        "machine: A Processor, 2 cores, Linux",
        "versions: Python 3.11.15, palimpsest 0.1.0, torch 2.13.0",
    ):
        assert part in output


def test_uncommitted_changes_and_changed_inputs_are_said(few, capsys):
    path = few / "results" / "reports" / "fill" / f"{PATH}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    report["outputs"] = dict.fromkeys(report["outputs"], "0" * 64)
    report["code"]["dirty"] = True
    path.write_text(json.dumps(report), encoding="utf-8")
    assert main(["where-from", PATH]) == 0
    output = capsys.readouterr().out
    assert "CHANGED SINCE: fill@chat-allow_list-minilm-top_k-1 has made it again" in output
    assert f"{COMMIT} with uncommitted changes" in output


def test_hashes_of_another_clone_are_not_compared(few, capsys):
    path = few / "results" / "reports" / "fill" / f"{PATH}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**report, "hash_key": "0123456789ab"}), encoding="utf-8")
    assert main(["where-from", PATH]) == 0
    output = capsys.readouterr().out
    assert "made by fill@chat-allow_list-minilm-top_k-1 in another clone, whose hashes have another key" in output
    assert "CHANGED SINCE" not in output


def test_a_report_that_was_not_made_through_dvc_gets_its_stage_by_name(few, capsys):
    path = few / "results" / "reports" / "perplexity" / f"{PATH}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**report, "dvc_stage": None}), encoding="utf-8")
    assert resolve(PATH)["stage"] == STAGE


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("chat/allow_list/minilm-topk-1", f"(did you mean '{PATH}'?)"),
        ("evaluate@chat-oracle-2", "(did you mean 'evaluate@chat-oracle-1'?)"),
        ("something", "nothing is known of 'something'; there are 4 cells"),
        ("0" * 32, "no run '00000000000000000000000000000000' in the experiment 'palimpsest'"),
        (f"{PATH}#000000000000", "no run has the key"),
    ],
)
def test_unknown_names_are_one_line_with_the_nearest(tracked, capsys, name, says):
    assert main(["where-from", name]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error


def test_a_run_id_without_a_store_makes_none(few, capsys):
    assert main(["where-from", "0" * 32]) == 1
    assert "there is no MLflow store" in capsys.readouterr().err
    assert not (few / "mlflow.db").exists()
