import json
import subprocess
import sys
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


def train(report, points=None, params="params.yaml"):
    """Log the points as a training loop would; returns the run's warning."""
    with live_run(params, CELL, lineage_of(report)) as run:
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
    # Neither without parameters, nor for what is no cell.
    assert train(report, params=None) is None
    with live_run("params.yaml", Cell(), lineage_of(report)) as run:
        run.log(1, {"train_loss": 1.0})
    assert not (few / "mlflow.db").exists()


def test_the_load_of_the_machine_is_sampled_and_publishing_leaves_it_alone(tracked, report):
    parameters = yaml.safe_load((tracked / "params.yaml").read_text(encoding="utf-8"))
    parameters["tracking"]["system_metrics_seconds"] = 0.2
    (tracked / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")

    def points():
        for point in report["measured"]["curve"]:
            yield point
            time.sleep(0.2)

    assert train(report, points()) is None
    run = tracked_state.runs(tracked)[run_key(CELL, lineage_of(report))]
    memory = tracked_state.metric(tracked, run, "system/system_memory_usage_megabytes")
    assert memory
    assert all(value > 0 for _, value in memory)
    assert main(["publish"]) == 0
    assert tracked_state.runs(tracked)[run_key(CELL, lineage_of(report))] == run
    assert tracked_state.count_runs(tracked) == 4
    assert tracked_state.metric(tracked, run, "system/system_memory_usage_megabytes") == memory
    parameters["tracking"]["system_metrics"] = False
    (tracked / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    assert train(report, points()) is None
    assert tracked_state.metric(tracked, run, "system/system_memory_usage_megabytes") == memory


def test_a_store_that_does_not_answer_leaves_training_alone(tracked, report, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://name:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    warning = train(report)
    assert "'palimpsest publish' takes it from the report" in warning
    assert "secret" not in warning
    assert capsys.readouterr().err == f"warning: {warning}\n"


TRAINING = """
import json, sys
from tasks.records.cell import Cell
from tasks.results.tracking.live_run import live_run
cell = Cell("chat", "allow_list", "top_k", "minilm", int(sys.argv[1]))
with live_run("params.yaml", cell, {"parameters": {}, "inputs": {}, "seed": 1}) as run:
    for step in range(50):
        run.log(step, {"train_loss": 5.0 - step / 100})
print(json.dumps(run.warning))
"""


def test_trainings_at_once_have_a_run_each_and_the_same_training_twice_has_one(tracked):
    """Three processes write to one SQLite store; two of them train the same cell."""
    command = [sys.executable, "-c", TRAINING]
    processes = [
        subprocess.Popen([*command, seed], cwd=tracked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for seed in ("1", "1", "2")
    ]
    outputs = [process.communicate() for process in processes]
    assert [output for output, _ in outputs] == ["null\n"] * 3, outputs
    runs = tracked_state.runs(tracked)
    assert len(runs) == tracked_state.count_runs(tracked) == 2
    for run in runs.values():
        steps = [step for step, _ in tracked_state.metric(tracked, run, "train_loss")]
        assert sorted(set(steps)) == list(range(50))
