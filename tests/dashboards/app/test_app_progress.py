from dataclasses import replace

from test_app_rows import run_of

from dashboards.app.follow_view import State, progress
from tasks.records.cell import Cell

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
