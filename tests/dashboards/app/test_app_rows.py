from dataclasses import replace

from dashboards.app.follow_view import State, progress
from dashboards.app.result_rows import in_table_order, measured, result_rows, selected_rows, summary_by_key
from dashboards.app.tracked_runs import TrackedRun, read_curve, read_runs, run_page
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells
from tasks.results.measures import measure
from tasks.results.tables import entry
from tasks.results.tracking.settings import TrackingSettings


def shown(name: str, rows: list[dict]) -> str:
    return str(entry(measure(name), rows, "app"))


def run_of(cell: Cell, **metrics: float) -> TrackedRun:
    return TrackedRun(
        run_id="f" * 32,
        experiment_id="1",
        cell=cell,
        key=f"{cell.path}#0123456789ab",
        current=True,
        status="FINISHED",
        started=0,
        ended=1,
        metrics=metrics,
        parameters={},
        tags={"protocol": "ppl|unit=word|eos=counted"},
    )


def test_runs_come_back_from_mlflow_as_their_cells(parameters):
    runs = in_table_order(read_runs(parameters.tracking), parameters.compare)
    assert [run.cell for run in runs] == expected_cells(parameters.compare)
    assert all(run.current and run.status == "FINISHED" for run in runs)
    baseline = next(run for run in runs if run.cell.path == "chat/allow_list/baseline1-1")
    assert baseline.metrics["perplexity"] == 427.0
    assert "train_loss" in baseline.metrics


def test_a_curve_has_the_steps_of_the_report(parameters):
    run = next(run for run in read_runs(parameters.tracking) if run.cell.method == "oracle")
    curve = read_curve(parameters.tracking, run.run_id, "train_loss")
    assert [step for step, _ in curve] == list(range(20, 260, 20))
    assert curve[0][1] > curve[-1][1]
    assert [step for step, _ in read_curve(parameters.tracking, run.run_id, "valid_loss")] == [0, 240]


def test_numbers_and_intervals_are_those_of_mlflow():
    cell = Cell("chat", "allow_list", "top_k", "minilm", 1)
    metrics = {"perplexity": 445.0, "perplexity_low": 430.0, "perplexity_high": 460.0}
    above = {"ratio_to_baseline1": 1.04, "ratio_to_baseline1_low": 1.01, "ratio_to_baseline1_high": 1.07}
    rows = result_rows([run_of(cell, **metrics, **above)], {})
    assert shown("perplexity", rows) == "445.0 [430, 460] ▲"
    rows = result_rows([run_of(cell, **metrics, **{**above, "ratio_to_baseline1_low": 0.99})], {})
    assert shown("perplexity", rows) == "445.0 [430, 460]"
    assert [each.name for each in measured(rows)] == ["perplexity", "ratio_to_baseline1"]


def test_word_error_rates_are_marked_against_the_pretrained_model():
    cell = Cell("chat", None, "oracle", None, 1)
    below = {"wer_difference_to_pretrained": -0.03}
    ends = {"wer_difference_to_pretrained_low": -0.04, "wer_difference_to_pretrained_high": -0.02}
    rows = result_rows([run_of(cell, wer=0.12, wer_low=0.11, wer_high=0.13, **below, **ends)], {})
    assert shown("wer", rows) == "12.00 [11.00, 13.00] ▼"
    assert shown("wer_difference_to_pretrained", rows) == "-3.00 [-4.00, -2.00] ▼"


def test_another_protocol_than_oracles_is_marked():
    oracle = run_of(Cell("chat", None, "oracle", None, 1), perplexity=100.0)
    other = run_of(Cell("chat", "allow_list", "top_k", "minilm", 1), perplexity=50.0)
    object.__setattr__(other, "tags", {"protocol": "ppl|unit=word|eos=left_out"})
    rows = result_rows([oracle, other], {})
    assert [row["protocol_differs"] for row in rows] == [[], ["eos"]]
    assert shown("perplexity", rows[1:]) == "50.0 ‡"


def test_a_part_of_the_seeds_loses_what_is_known_of_all_of_them():
    cells = [Cell("chat", "allow_list", "top_k", "minilm", seed) for seed in (1, 2)]
    summary = {f"{cell.path}#0123456789ab": {"over_seeds": {"perplexity_mean": 1.0}} for cell in cells}
    rows = result_rows([run_of(cell, perplexity=100.0 + 10 * cell.seed) for cell in cells], summary)
    both = selected_rows(rows, {"seed": [1, 2], "method": ["top_k"]})
    assert [row["over_seeds"] for row in both] == [{"perplexity_mean": 1.0}] * 2
    assert shown("perplexity", both).startswith("115.0 ± 7.1")
    one = selected_rows(rows, {"seed": [2]})
    assert [(row["seed"], row["over_seeds"]) for row in one] == [(2, None)]


def test_what_has_no_value_in_a_dimension_is_always_chosen():
    cells = [Cell("chat", None, "pretrained"), Cell("chat", "allow_list", "baseline1", None, 1)]
    rows = result_rows([run_of(cell, perplexity=1.0) for cell in cells], {})
    assert [row["method"] for row in selected_rows(rows, {"technique": ["entity_tagger"]})] == ["pretrained"]


def test_the_summary_is_not_needed(in_project, tmp_path):
    assert len(summary_by_key()) == 13
    assert summary_by_key(tmp_path / "summary.json") == {}


def test_a_run_has_a_page_where_there_is_a_server(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run = run_of(Cell("chat", None, "pretrained"))
    assert run_page(TrackingSettings(), run) is None
    there = TrackingSettings(uri="http://user:secret@127.0.0.1:5000/")
    page = f"http://127.0.0.1:5000/#/experiments/1/runs/{'f' * 32}"
    assert run_page(there, run) == f"{page}?workflowType=machine_learning"


CELL = Cell("chat", "allow_list", "top_k", "minilm", 1)
MEASURED = run_of(CELL, perplexity=100.0)
TRAINING = replace(run_of(CELL, train_loss=5.0), status="RUNNING", current=False, started=5, ended=None)


def state(*runs):
    (found,) = progress([CELL], runs)
    return found.state, found.earlier


def test_the_state_of_a_cell():
    assert state() == (State.WAITING, False)
    assert state(MEASURED) == (State.MEASURED, False)
    assert state(TRAINING) == (State.RUNNING, False)
    assert state(replace(TRAINING, status="FINISHED")) == (State.TRAINED, False)
    assert state(replace(TRAINING, status="KILLED")) == (State.STOPPED, False)


def test_a_cell_that_trains_again_keeps_its_earlier_numbers():
    assert state(MEASURED, TRAINING) == (State.RUNNING, True)
    # The same key: measured before, trained again.
    assert state(replace(MEASURED, status="RUNNING")) == (State.RUNNING, True)


def test_runs_of_cells_that_the_experiment_does_not_have_are_left_out():
    assert progress([], [MEASURED]) == []
