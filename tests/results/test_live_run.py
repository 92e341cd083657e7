import json
import time

import pytest
import tracked_state
import yaml

from tasks.cli import main
from tasks.records.cell import Cell
from tasks.records.run_key import lineage_of, run_key
from tasks.results.tracking.live_run import live_run

CELL = Cell("chat", "allow_list", "top_k", "minilm", 1)


@pytest.fixture
def report(tracked):
    """The training report of the cell that the tests log."""
    path = tracked / "results" / "reports" / "adapt" / f"{CELL.path}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def train(report, points=None):
    """Log the points as a training loop would; returns the run's warning."""
    with live_run("params.yaml", CELL, lineage_of(report)) as run:
        for point in report["measured"]["curve"] if points is None else points:
            run.log(point["step"], {name: value for name, value in point.items() if name != "step"})
    return run.warning


def status_of(folder, run_id):
    rows = tracked_state.tables(folder, "runs")["runs"]
    return next(row for row in rows if run_id in row)


def test_live_and_published_are_one_run_with_one_curve(tracked, report):
    assert train(report) is None
    key = run_key(CELL, lineage_of(report))
    run = tracked_state.runs(tracked)[key]
    expected = [(point["step"], point["train_loss"]) for point in report["measured"]["curve"] if "train_loss" in point]
    assert tracked_state.metric(tracked, run, "train_loss") == expected
    ended = status_of(tracked, run)
    assert main(["publish"]) == 0
    assert tracked_state.count_runs(tracked) == 4
    assert tracked_state.runs(tracked)[key] == run
    assert tracked_state.metric(tracked, run, "train_loss") == expected
    assert tracked_state.metric(tracked, run, "perplexity") == [(0, 445.0)]
    assert status_of(tracked, run) == ended


def test_points_are_in_the_store_before_the_training_ends(tracked, report):
    def points():
        yield {"step": 10, "train_loss": 5.0}
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            runs = tracked_state.runs(tracked)
            if runs and tracked_state.metric(tracked, *runs.values(), "train_loss"):
                break
            time.sleep(0.1)
        (run,) = runs.values()
        assert tracked_state.metric(tracked, run, "train_loss") == [(10, 5.0)]
        assert "RUNNING" in status_of(tracked, run)

    assert train(report, points()) is None


def test_publishing_first_and_training_again_does_not_double_the_curve(tracked, report):
    assert main(["publish"]) == 0
    run = tracked_state.runs(tracked)[run_key(CELL, lineage_of(report))]
    before = tracked_state.tables(tracked, "metrics", "params", "tags")
    # Undefined values are left out.
    assert train(report, [*report["measured"]["curve"], {"step": 999, "train_loss": float("nan")}]) is None
    assert tracked_state.tables(tracked, "metrics", "params", "tags") == before
    assert "FINISHED" in status_of(tracked, run)


def test_a_curve_that_broke_off_goes_on(tracked, report):
    def points():
        yield from report["measured"]["curve"][:5]
        raise RuntimeError("the training died")

    with pytest.raises(RuntimeError, match="the training died"):
        train(report, points())
    identifier = tracked_state.runs(tracked)[run_key(CELL, lineage_of(report))]
    assert "FAILED" in status_of(tracked, identifier)
    assert len(tracked_state.metric(tracked, identifier, "train_loss")) == 4
    assert train(report) is None
    assert tracked_state.count_runs(tracked) == 1
    assert len(tracked_state.metric(tracked, identifier, "train_loss")) == 12
    assert "FINISHED" in status_of(tracked, identifier)


def test_switched_off_it_says_so_and_makes_no_store(few, report, capsys):
    (few / "mlflow.db").unlink()
    parameters = yaml.safe_load((few / "params.yaml").read_text(encoding="utf-8"))
    parameters["tracking"]["live"] = False
    (few / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    warning = train(report)
    assert "tracking.live is false" in warning
    assert capsys.readouterr().err == f"warning: {warning}\n"
    # Nor for a model that is no cell.
    with live_run("params.yaml", Cell(), lineage_of(report)) as run:
        run.log(1, {"train_loss": 1.0})
    assert not (few / "mlflow.db").exists()


def test_a_store_that_does_not_answer_leaves_training_alone(tracked, report, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://name:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    warning = train(report)
    assert "'palimpsest publish' takes it from the report" in warning
    assert "secret" not in warning
    assert capsys.readouterr().err == f"warning: {warning}\n"
