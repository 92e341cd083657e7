"""``palimpsest where-from``: the chain from a number back to its sources."""

import json
import re

import pytest
import tracked_state
from command_results import refusal
from handmade_experiment import COMMIT, FEW, make_experiment
from handmade_reports import TOP_K, change, report_path

from tasks.cli import main

PATH = TOP_K.path
CELL = PATH.replace("/", "-")


@pytest.fixture
def where_from(capsys):
    """The answer of the command on a name."""

    def ask(*words):
        capsys.readouterr()
        assert main(["where-from", *words]) == 0
        return capsys.readouterr().out

    return ask


def test_each_name_of_a_number_leads_to_its_sources_also_as_json(few, where_from):
    by_path = where_from(PATH)
    key = by_path.splitlines()[0]
    assert key.startswith(f"{PATH}#")
    for name in (key, f"evaluate@{CELL}", f"perplexity/{PATH}"):
        assert where_from(name) == by_path
    for part in (
        f"commit                      {COMMIT}\n",
        f"make again                  palimpsest restore evaluate@{CELL}\n",
        "perplexity                  445\n",
        "language_model.adaptation.epochs",
        "machine: A Processor, 2 cores, Linux",
        "versions: Python 3.11.15, palimpsest 0.1.0, torch 2.13.0",
    ):
        assert part in by_path
    first, *stages = re.findall(r"^\d+\. (.*)$", by_path, re.MULTILINE)
    assert first == f"evaluate@{CELL}"
    shared = {"corpus@chat", "train_filler@minilm", "pretrain", "vocabulary", "word_counts", "generic"}
    assert set(stages) == {f"adapt@{CELL}", f"fill@{CELL}", "mask@train-chat-allow_list", *shared}
    for path, origin in (
        ("data/private/masked/chat/train/allow_list/text.txt", "made by mask@train-chat-allow_list"),
        ("data/private/corpora/chat/train.txt", "in a folder made by corpus@chat"),
        ("constraints.txt", "a source"),
    ):
        assert re.search(rf"from {path} \(keyed hash [0-9a-f]{{12}}…\), {origin}\n", by_path)
    found = json.loads(where_from(PATH, "--json"))
    assert (found["code"]["commit"], found["measured"]["perplexity"]) == (COMMIT, 445.0)
    assert found["again"] == f"palimpsest restore evaluate@{CELL}"
    read = {link["path"]: link["origin"] for report in found["chain"] for link in report["read"]}
    assert read["data/private/masked/chat/train/allow_list/text.txt"] == "made by mask@train-chat-allow_list"
    assert found["chain"][0]["dvc_stage"] == f"evaluate@{CELL}"


def test_a_run_of_an_earlier_state_is_answered_from_the_store(published, tmp_path, monkeypatch, where_from):
    by_path = where_from(PATH)
    old = by_path.splitlines()[0]
    run = tracked_state.runs(published)[old]
    assert where_from(run) == by_path
    other = make_experiment(tmp_path / "other", k=20, **FEW)
    (published / "mlflow.db").rename(other / "mlflow.db")
    monkeypatch.chdir(other)
    for name in (old, run):
        output = where_from(name)
        assert output.startswith(f"{old}\n  a run of an earlier state")
        assert re.search(r"fill\.k +10\n", output)
        assert re.search(r"perplexity +445\n", output)
        assert f"palimpsest restore {run}\n" in output
        assert f"from data/obfuscated/{PATH}.txt" in output


def test_uncommitted_changes_and_changed_inputs_are_said(few, where_from):
    outputs = dict.fromkeys(change(f"fill/{PATH}")["outputs"], "0" * 64)
    change(f"fill/{PATH}", outputs=outputs, code={"commit": COMMIT, "dirty": True})
    output = where_from(PATH)
    assert f"CHANGED SINCE: fill@{CELL} has made it again" in output
    assert f"{COMMIT} with uncommitted changes" in output
    # Hashes of another clone are not compared.
    change(f"fill/{PATH}", hash_key="0123456789ab")
    output = where_from(PATH)
    assert f"made by fill@{CELL} in another clone, whose hashes have another key" in output
    assert "CHANGED SINCE" not in output


def test_unknown_names_are_one_line_with_the_nearest(tracked):
    for name, says in (
        ("chat/allow_list/minilm-topk-1", f"(did you mean '{PATH}'?)"),
        ("something", "nothing is known of 'something'; there are 4 cells"),
        ("0" * 32, "nothing is known of '00000000000000000000000000000000'"),
    ):
        assert says in refusal("where-from", name)


def test_a_run_id_without_a_store_makes_none(few):
    assert "there is no MLflow store" in refusal("where-from", "0" * 32)
    assert not (few / "mlflow.db").exists()


def test_the_chain_follows_a_folder_above_several_outputs(few, where_from):
    """Evaluation reads a folder; each technique's own stage wrote one part of it."""
    folder, mask = "data/private/masked/chat/test", change("mask/chat/allow_list")
    made = {name: f"mask@test-chat-{name}" for name in ("allow_list", "entity_tagger")}
    for technique, stage in made.items():
        path = report_path(f"mask_test/chat/{technique}")
        path.parent.mkdir(parents=True, exist_ok=True)
        outputs = {f"{folder}/{technique}/text.txt": "0" * 64}
        path.write_text(json.dumps({**mask, "dvc_stage": stage, "inputs": {}, "outputs": outputs}), encoding="utf-8")
    change(f"perplexity/{PATH}", lambda report: report["inputs"].update({folder: "1" * 64}))
    output = where_from(PATH)
    for stage in made.values():
        assert f"from {folder} (keyed hash 111111111111…), with files made by {stage}\n" in output
        assert f". {stage}\n" in output
    assert f"from {folder} (keyed hash 111111111111…), a source" not in output
