"""'palimpsest publish': one run of MLflow for each cell, as its reports say; and the curve of a running training."""

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import forked_commands
import pytest
import tracked_state
from command_results import refusal
from handmade_experiment import COMMIT, FEW, SIGNATURE, curve, make_experiment, perplexities_of
from handmade_reports import TOP_K, change, rows_of

from tasks.cli import main
from tasks.records.run_key import lineage_of, run_key
from tasks.results.tracking.live_run import live_run

CURRENT = "palimpsest.current"
RUNS = "select run_uuid from runs"


def key():
    """The key of Top-K in the summary."""
    return next(row["key"] for row in rows_of() if row["key"].startswith(f"{TOP_K.path}#"))


def test_one_run_per_cell_with_numbers_curves_parameters_inputs_and_tags(published):
    assert tracked_state.count_runs(published) == 4
    run = tracked_state.runs(published)[key()]
    numbers = {"perplexity": 445.0, "perplexity_low": 445.0 * 0.97, "masked_fraction": 0.169, "restoration_rate": 0.034}
    for name, value in numbers.items():
        assert tracked_state.metric(published, run, name) == [(0, value)]
    assert tracked_state.metric(published, run, "wer") == []
    parameters = {"fill.k": "10", "mask.kind": "allow_list", "adapt.epochs": "2.0"}
    assert parameters.items() <= tracked_state.parameters(published, run).items()
    tags = {"dataset": "chat", "technique": "allow_list", "method": "top_k", "filler": "minilm", "seed": "1"}
    tags |= {"group": "fill", "condition": "chat/allow_list/minilm-top_k", "commit": COMMIT, "dirty": "false"}
    tags |= {"protocol": SIGNATURE, "dvc_stage": "evaluate@chat-allow_list-minilm-top_k-1", CURRENT: "true"}
    assert tags.items() <= tracked_state.tags(published, run).items()
    points = list(curve(6.1, math.log(perplexities_of(TOP_K)[0])))
    expected = [(point["step"], point["train_loss"]) for point in points if "train_loss" in point]
    assert tracked_state.metric(published, run, "train_loss") == expected
    assert [step for step, _ in tracked_state.metric(published, run, "valid_loss")] == [0, 240]
    tables = tracked_state.tables(published, "datasets", "input_tags")
    inputs = {row[2]: row[3] for row in tables["datasets"]}
    assert {len(digest) for digest in inputs.values()} == {10}
    text = f"data/obfuscated/{TOP_K.path}.txt"
    assert {"models/pretrained", "data/private/corpora/chat/test.txt", text} <= set(inputs)
    assert {row[-1] for row in tables["input_tags"]} == {"training", "validation", "testing", "initial model"}


def test_publishing_twice_changes_nothing_and_an_empty_store_is_filled_again(published, empty_store, capsys):
    before, record = tracked_state.tables(published), (published / "results" / "published.json").read_bytes()
    assert set(json.loads(record)) == {"runs", "keys"}
    assert main(["publish"]) == 0
    assert "0 created, 4 unchanged" in capsys.readouterr().out
    assert tracked_state.tables(published) == before
    assert (published / "results" / "published.json").read_bytes() == record
    keys, points = set(tracked_state.runs(published)), {row[:2] for row in before["metrics"]}
    assert len(points) > 100
    (published / "mlflow.db").write_bytes(empty_store.read_bytes())
    assert main(["publish"]) == 0
    assert "4 created" in capsys.readouterr().out
    assert set(tracked_state.runs(published)) == keys
    assert {row[:2] for row in tracked_state.tables(published, "metrics")["metrics"]} == points


def test_two_publishers_at_once_make_no_duplicate_and_one_new_store(few):
    """Both begin without any store: making it is a race too."""
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda _: forked_commands.palimpsest(few, "publish"), range(2)))
    assert [process.returncode for process in ended] == [0, 0], ended
    said = sorted(process.stdout for process in ended)
    assert "0 created, 4 unchanged" in said[0]
    assert "4 created" in said[1]
    assert tracked_state.count_runs(few) == len(tracked_state.runs(few)) == 4


def test_an_earlier_state_stays_and_is_no_longer_current(published, tmp_path, monkeypatch, capsys):
    old = key()
    other = make_experiment(tmp_path / "other", k=20, **FEW)
    (published / "mlflow.db").rename(other / "mlflow.db")
    monkeypatch.chdir(other)
    assert main(["summarise"]) == main(["publish"]) == 0
    assert "1 created, 3 unchanged, 1 superseded" in capsys.readouterr().out
    runs = tracked_state.runs(other)
    assert len(runs) == 5
    for one, current, k in ((old, "false", "10"), (key(), "true", "20")):
        assert tracked_state.tags(other, runs[one])[CURRENT] == current
        assert tracked_state.parameters(other, runs[one])["fill.k"] == k


def test_a_number_that_was_measured_again_is_in_a_run_of_its_own(published):
    """The same training, or other code with another curve: MLflow can take back neither, so a new run has them."""
    old = tracked_state.runs(published)[key()]

    def lower(report):
        for point in report["measured"]["curve"]:
            if "train_loss" in point:
                point["train_loss"] -= 0.5

    change(f"perplexity/{TOP_K.path}", lambda report: report["measured"].update(perplexity=444.0))
    change(f"adapt/{TOP_K.path}", lower)
    assert main(["summarise"]) == main(["publish"]) == 0
    assert tracked_state.count_runs(published) == 5
    runs = {run: tracked_state.tags(published, run) for (run,) in tracked_state.select(published, RUNS)}
    (new,) = (run for run, tags in runs.items() if tags["palimpsest.key"] == key() and run != old)
    assert (runs[old][CURRENT], runs[new][CURRENT]) == ("false", "true")
    assert tracked_state.metric(published, new, "perplexity") == [(0, 444.0)]
    first, second = (tracked_state.metric(published, run, "train_loss") for run in (old, new))
    assert [value for _, value in second] == [value - 0.5 for _, value in first]
    before = tracked_state.tables(published)
    assert main(["publish"]) == 0
    assert tracked_state.tables(published) == before


def test_a_publication_that_was_interrupted_is_made_again(tracked, monkeypatch):
    from mlflow import MlflowClient

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "set_terminated", Mock(side_effect=KeyboardInterrupt))
        assert main(["publish"]) == 130
    assert tracked_state.count_runs(tracked) == 1
    assert main(["publish"]) == 0
    states = [state for (state,) in tracked_state.select(tracked, "select lifecycle_stage from runs")]
    assert sorted(states) == ["active"] * 4 + ["deleted"]


def test_what_cannot_be_published_is_one_line(few, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://name:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert main(["publish"]) == 75
    error = capsys.readouterr().err
    assert "the MLflow store 'http://127.0.0.1:9' cannot be used" in error
    assert "secret" not in error
    change(f"adapt/{TOP_K.path}", lambda report: report["parameters"].update(more=1))
    assert "it is of an earlier state; run 'palimpsest summarise' first" in refusal("publish")


def training():
    """The training report of the cell that the tests log, and its points of the loss."""
    report = change(f"adapt/{TOP_K.path}")
    return report, [(each["step"], each["train_loss"]) for each in report["measured"]["curve"] if "train_loss" in each]


def train(points=None):
    """Log the points as a training loop would; returns the run's warning."""
    report, _ = training()
    with live_run("params.yaml", TOP_K, lineage_of(report)) as run:
        for point in report["measured"]["curve"] if points is None else points:
            run.log(point["step"], {name: value for name, value in point.items() if name != "step"})
    return run.warning


def run_of(folder):
    """The id of the cell's run, its row in the store, and its curve."""
    run = tracked_state.runs(folder)[run_key(TOP_K, lineage_of(training()[0]))]
    row = next(row for row in tracked_state.tables(folder, "runs")["runs"] if run in row)
    return run, row, tracked_state.metric(folder, run, "train_loss")


def test_points_are_in_the_store_before_the_training_ends_and_publishing_replaces_the_runs(tracked, monkeypatch):
    monkeypatch.setattr("tasks.results.tracking.live_run.FLUSH_SECONDS", 0.1)

    def points():
        yield {"step": 10, "train_loss": 5.0}
        deadline = time.monotonic() + 60
        while not tracked_state.tables(tracked, "metrics")["metrics"] and time.monotonic() < deadline:
            time.sleep(0.1)
        _, row, points = run_of(tracked)
        assert points == [(10, 5.0)]
        assert "RUNNING" in row
        raise RuntimeError("the training died")

    with pytest.raises(RuntimeError, match="the training died"):
        train(points())
    first, row, _ = run_of(tracked)
    assert "FAILED" in row
    assert train() is None
    assert main(["publish"]) == 0
    states = [(row[0], "deleted" in row) for row in tracked_state.tables(tracked, "runs")["runs"]]
    assert (len(states), (first, True) in states) == (6, True)
    active = [run for run, deleted in states if not deleted]
    (run,) = (run for run in active if tracked_state.tags(tracked, run)["palimpsest.cell"] == TOP_K.path)
    assert tracked_state.metric(tracked, run, "train_loss") == training()[1]
    assert tracked_state.metric(tracked, run, "perplexity") == [(0, 445.0)]


def test_a_store_that_does_not_answer_leaves_training_alone(few, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://name:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    warning = train()
    assert "'palimpsest publish' takes it from the report" in warning
    assert "secret" not in warning
    assert capsys.readouterr().err == f"warning: {warning}\n"
