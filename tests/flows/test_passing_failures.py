"""Which failures are tried again: told apart by exit status and by the one line of our own commands."""

import pytest

from flows.stages.executor import may_pass

FAILED = "ERROR: failed to reproduce 'raw': failed to run: palimpsest mask, exited with {}"


def printed(line: str, status: int) -> str:
    return f"Running stage 'raw':\n> palimpsest mask\nprivate words\n{line}\n{FAILED.format(status)}\n"


def test_locks_network_and_memory_pass() -> None:
    for line, status in [
        ("", -9),
        ("", 137),
        ("palimpsest: error: another process is making 'data/masked'; wait for it, or end it first", 1),
        ("palimpsest: error: another process has held the lock '/a/mlflow.db.lock' for 120 seconds; wait", 1),
        ("palimpsest: error: the MLflow store 'http://a' cannot be used (ConnectionError); start its server", 1),
        ("palimpsest: error: rank 1 of 2 was ended by SIGKILL, and the training with it", 1),
        ("palimpsest: error: the worker on cuda:0 was killed by SIGKILL, as the system does", 1),
        ("palimpsest: internal error: OutOfMemoryError at modeling.py:3 in forward. The message is withheld", 70),
        ("palimpsest: internal error: MemoryError at a.py:3 in b. The message is withheld", 70),
        ("palimpsest: internal error: OperationalError at default.py:941 in do_execute.", 70),
    ]:
        assert may_pass(printed(line, status), 255)


def test_bad_input_and_defects_do_not() -> None:
    for line, status in [
        ("palimpsest: error: params.yaml: filling.top_k.k: is missing", 1),
        ("palimpsest: error: no such file: 'a.txt'", 1),
        ("palimpsest: error: the disk is full while writing 'a.txt'; free some space and run it again", 1),
        ("palimpsest: error: the MLflow store 'mlflow.db' cannot be used (ImportError); start its server", 1),
        ("palimpsest: internal error: IndexError at a.py:3 in b. The message is withheld", 70),
        ("ConnectionError MemoryError timed out", 1),
        ("", 2),
        ("", -15),
    ]:
        assert not may_pass(printed(line, status), 255)


def test_words_of_a_corpus_decide_nothing() -> None:
    text = printed("palimpsest: error: no such file: 'a.txt'", 1)
    assert not may_pass(text.replace("private words", "palimpsest: internal error: MemoryError"), 255)


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("ERROR: Unable to acquire lock. Most likely another DVC process is running", True),
        ("ERROR: failed to push data to the cloud - Connection refused", True),
        ("ERROR: output 'raw.txt' does not exist", False),
    ],
)
def test_errors_of_dvc_itself(line: str, passes: bool) -> None:
    assert may_pass(line, 255) is passes


def test_a_killed_dvc_is_tried_again() -> None:
    assert may_pass("", -9)
    assert not may_pass("", -15)
