"""Which failures are tried again: told apart by exit status and by the one line of our own commands."""

from flows.stages.executor import may_pass

FAILED = "ERROR: failed to reproduce 'raw': failed to run: palimpsest mask, exited with {}"


def printed(line: str, status: int) -> str:
    return f"Running stage 'raw':\n> palimpsest mask\nprivate words\n{line}\n{FAILED.format(status)}\n"


def test_locks_network_and_memory_pass_and_bad_input_and_defects_do_not() -> None:
    store = "palimpsest: error: the MLflow store 'http://a' cannot be used"
    for line, status, passes in [
        ("", -9, True),
        ("", 137, True),
        ("palimpsest: error: another process is making 'data/masked'; wait for it, or end it first", 1, True),
        ("palimpsest: error: another process has held the lock '/a/mlflow.db.lock' for 120 seconds; wait", 1, True),
        (f"{store} (ConnectionError); start its server", 1, True),
        ("palimpsest: error: rank 1 of 2 was ended by SIGKILL, and the training with it", 1, True),
        ("palimpsest: error: the worker on cuda:0 was killed by SIGKILL, as the system does", 1, True),
        ("palimpsest: internal error: OutOfMemoryError at modeling.py:3 in forward. The message is withheld", 70, True),
        ("palimpsest: internal error: MemoryError at a.py:3 in b. The message is withheld", 70, True),
        ("palimpsest: internal error: OperationalError at default.py:941 in do_execute.", 70, True),
        ("palimpsest: error: params.yaml: filling.top_k.k: is missing", 1, False),
        ("palimpsest: error: no such file: 'a.txt'", 1, False),
        ("palimpsest: error: the disk is full while writing 'a.txt'; free some space and run it again", 1, False),
        (f"{store} (ImportError); start its server", 1, False),
        ("palimpsest: internal error: IndexError at a.py:3 in b. The message is withheld", 70, False),
        ("ConnectionError MemoryError timed out", 1, False),
        ("", 2, False),
        ("", -15, False),
    ]:
        assert may_pass(printed(line, status), 255) is passes
    for line, status, passes in [
        ("ERROR: Unable to acquire lock. Most likely another DVC process is running", 255, True),
        ("ERROR: failed to push data to the cloud - Connection refused", 255, True),
        ("ERROR: output 'raw.txt' does not exist", 255, False),
        ("", -9, True),
        ("", -15, False),
    ]:
        assert may_pass(line, status) is passes


def test_words_of_a_corpus_decide_nothing() -> None:
    text = printed("palimpsest: error: no such file: 'a.txt'", 1)
    assert not may_pass(text.replace("private words", "palimpsest: internal error: MemoryError"), 255)
