"""Failures that are tried again: our commands say so by their exit status."""

import pytest

from flows.stages.executor import may_pass
from tasks import cli
from tasks.errors import CorpusError, PassingError, ResourceError

FAILED = "ERROR: failed to reproduce 'raw': failed to run: palimpsest mask, exited with {}"


def printed(line: str, status: int) -> str:
    return f"Running stage 'raw':\n> palimpsest mask\nprivate words\n{line}\n{FAILED.format(status)}\n"


def test_the_status_of_the_command_decides_and_no_word_that_it_prints() -> None:
    words = "palimpsest: error: another process has held the lock; ConnectionError MemoryError timed out"
    for status, passes in [(75, True), (-9, True), (137, True), (1, False), (2, False), (70, False), (-15, False)]:
        assert may_pass(printed(words, status), 255) is passes
    for line, status, passes in [
        ("ERROR: Unable to acquire lock. Most likely another DVC process is running", 255, True),
        ("ERROR: output 'raw.txt' does not exist", 255, False),
        ("", -9, True),
        ("", -15, False),
    ]:
        assert may_pass(line, status) is passes


class OutOfMemoryError(RuntimeError):
    """A class with the name of PyTorch's."""


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PassingError("busy"), 75),
        (MemoryError(), 75),
        (ConnectionRefusedError(), 75),
        (OutOfMemoryError(), 75),
        (ResourceError("no disk"), 1),
        (CorpusError("no line"), 1),
        (IndexError(), 70),
    ],
)
def test_a_command_ends_with_75_where_its_error_may_pass(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "_carry_out", fail)
    assert cli.main(["mask"]) == status
