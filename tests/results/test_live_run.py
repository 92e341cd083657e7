"""The curve of a training in MLflow while it runs."""

import time

import pytest
import tracked_state
import yaml
from handmade_reports import TOP_K, change

from tasks.cli import main
from tasks.records.cell import Cell
from tasks.records.run_key import lineage_of, run_key
from tasks.results.tracking.live_run import live_run


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


def test_switched_off_it_makes_no_store(few):
    # Nor for a model that is no cell.
    with live_run("params.yaml", Cell(), lineage_of(training()[0])) as run:
        run.log(1, {"train_loss": 1.0})
    parameters = yaml.safe_load((few / "params.yaml").read_text(encoding="utf-8"))
    parameters["tracking"]["live"] = False
    (few / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    assert train() is None
    assert not (few / "mlflow.db").exists()


def test_a_store_that_does_not_answer_leaves_training_alone(few, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://name:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    warning = train()
    assert "'palimpsest publish' takes it from the report" in warning
    assert "secret" not in warning
    assert capsys.readouterr().err == f"warning: {warning}\n"
