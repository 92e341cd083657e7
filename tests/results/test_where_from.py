import json
import re

import pytest
import tracked_state
from handmade_experiment import COMMIT, make_experiment

from tasks.cli import main

PATH = "chat/allow_list/minilm-top_k-1"
STAGE = "evaluate@chat-allow_list-minilm-top_k-1"


def where_from(name, capsys):
    capsys.readouterr()
    assert main(["where-from", name]) == 0
    return capsys.readouterr().out


def test_cell_key_stage_and_report_name_are_one_origin(few, capsys):
    by_path = where_from(PATH, capsys)
    key = by_path.splitlines()[0]
    assert key.startswith(f"{PATH}#")
    for name in (key, STAGE, f"perplexity/{PATH}"):
        assert where_from(name, capsys) == by_path
    for part in (
        f"commit                      {COMMIT}\n",
        f"make again                  palimpsest restore {STAGE}\n",
        "perplexity                  445\n",
        "language_model.adaptation.epochs",
        "machine: A Processor, 2 cores, Linux",
        "versions: Python 3.11.15, palimpsest 0.1.0, torch 2.13.0",
    ):
        assert part in by_path


def test_the_chain_goes_back_to_the_sources(few, capsys):
    output = where_from(PATH, capsys)
    stages = re.findall(r"^\d+\. (.*)$", output, re.MULTILINE)
    assert stages[0] == STAGE
    assert set(stages[1:]) == {
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
    for path, origin in (
        ("data/private/masked/chat/train/allow_list/text.txt", "made by mask@train-chat-allow_list"),
        ("data/private/corpora/chat/train.txt", "in a folder made by corpus@chat"),
        ("constraints.txt", "a source"),
    ):
        assert re.search(rf"from {path} \(keyed hash [0-9a-f]{{12}}…\), {origin}\n", output)


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
    output = where_from(PATH, capsys)
    for stage in made:
        assert f"from {folder} (keyed hash 111111111111…), with files made by {stage}\n" in output
        assert f". {stage}\n" in output
    assert f"from {folder} (keyed hash 111111111111…), a source" not in output


def test_a_run_of_an_earlier_state_is_answered_from_the_store(tracked, tmp_path, monkeypatch, capsys):
    assert main(["publish"]) == 0
    by_path = where_from(PATH, capsys)
    old = by_path.splitlines()[0]
    run = tracked_state.runs(tracked)[old]
    assert where_from(run, capsys) == by_path
    other = make_experiment(tmp_path / "other", k=20)
    (tracked / "mlflow.db").rename(other / "mlflow.db")
    monkeypatch.chdir(other)
    for name in (old, run):
        output = where_from(name, capsys)
        assert output.startswith(f"{old}\n  a run of an earlier state")
        assert re.search(r"fill\.k +10\n", output)
        assert re.search(r"perplexity +445\n", output)
        assert f"palimpsest restore {run}\n" in output
        assert f"from data/obfuscated/{PATH}.txt" in output


def test_uncommitted_changes_and_changed_inputs_are_said(few, capsys):
    path = few / "results" / "reports" / "fill" / f"{PATH}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    report["outputs"] = dict.fromkeys(report["outputs"], "0" * 64)
    report["code"]["dirty"] = True
    path.write_text(json.dumps(report), encoding="utf-8")
    output = where_from(PATH, capsys)
    assert "CHANGED SINCE: fill@chat-allow_list-minilm-top_k-1 has made it again" in output
    assert f"{COMMIT} with uncommitted changes" in output


def test_hashes_of_another_clone_are_not_compared(few, capsys):
    path = few / "results" / "reports" / "fill" / f"{PATH}.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**report, "hash_key": "0123456789ab"}), encoding="utf-8")
    output = where_from(PATH, capsys)
    assert "made by fill@chat-allow_list-minilm-top_k-1 in another clone, whose hashes have another key" in output
    assert "CHANGED SINCE" not in output


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
