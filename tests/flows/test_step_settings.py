"""Settings by step (time limits, tags with limits, times between tries), and which failures are tried again."""

from types import SimpleNamespace
from typing import Any

import pytest

from flows.runs.preparation import check_step_names, first_that_fits, retry_delays, tags
from flows.stages.executor import may_pass
from tasks import cli
from tasks.errors import ParameterError, PassingError, ResourceError
from tasks.settings.checks import check_settings
from tasks.settings.resources import ResourceSettings


def resources(**values: Any) -> ResourceSettings:
    return check_settings(ResourceSettings, {"threads": 1, "parallel_stages": 1, **values}, "resources")


def test_as_many_stages_run_at_once_as_cores_and_memory_have_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, gib, threads, stages in [(8, 64, 1, 8), (8, 64, 4, 2), (8, 11, 1, 4), (2, 64, 4, 1), (2, 1, 1, 1)]:
        monkeypatch.setattr("tasks.settings.resources.available_cores", lambda cores=cores: cores)
        monkeypatch.setattr("psutil.virtual_memory", lambda gib=gib: SimpleNamespace(available=gib << 30))
        assert resources(threads=threads, parallel_stages=None).stages_at_once == stages
        assert resources(threads=threads, parallel_stages=3).stages_at_once == 3


def test_the_first_limit_that_fits_counts_every_tag_that_names_a_step_and_tries_wait_longer() -> None:
    limits = {"fill": 5, "fill_*": 6}
    assert [first_that_fits(limits, step) for step in ("fill", "fill_tuned", "mask")] == [5, 6, None]
    gpu = {"limit": 1, "steps": ["adapt_*", "pretrain"]}
    shared = resources(concurrency={"gpu": gpu, "memory": {"limit": 2, "steps": ["pretrain"]}})
    assert [tags(shared, step) for step in ("pretrain", "adapt_filled", "mask")] == [["gpu", "memory"], ["gpu"], []]
    assert retry_delays(resources(retries=3, retry_seconds=5)) == [5, 10, 20]
    needs = {"address": "auto", "private_nodes": "private", "needs": {"fil": {"gpus": 1}}}
    for values, said in [
        ({"concurrency": {"gpu": gpu}}, "resources.concurrency.gpu.steps: 'adapt_*' fits no step"),
        ({"cluster": needs}, "resources.cluster.needs: 'fil' fits no step of dvc.yaml (did you mean 'fill'?)"),
    ]:
        with pytest.raises(ParameterError) as error:
            check_step_names(resources(**values), ["fill", "mask"])
        assert said in str(error.value)


def test_the_status_of_the_command_decides_what_is_tried_again_and_no_word_that_it_prints() -> None:
    words = "palimpsest: error: another process has held the lock; ConnectionError MemoryError timed out"
    for status, passes in [(75, True), (-9, True), (137, True), (1, False), (70, False), (-15, False)]:
        failed = f"ERROR: failed to reproduce 'raw': failed to run: palimpsest mask, exited with {status}"
        assert may_pass(f"Running stage 'raw':\n> palimpsest mask\nprivate words\n{words}\n{failed}\n", 255) is passes
    assert may_pass("ERROR: Unable to acquire lock. Most likely another DVC process is running", 255)
    assert not may_pass("ERROR: output 'raw.txt' does not exist", 255)
    assert may_pass("", -9)


class OutOfMemoryError(RuntimeError):
    """A class with the name of PyTorch's."""


def test_a_command_ends_with_75_where_its_error_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passing = [PassingError("busy"), MemoryError(), ConnectionRefusedError(), OutOfMemoryError()]
    failures = iter([*passing, ResourceError("no disk")])

    def fail(_arguments: list[str]) -> int:
        raise next(failures)

    monkeypatch.setattr(cli, "_carry_out", fail)
    assert [cli.main(["mask"]) for _ in range(5)] == [75, 75, 75, 75, 1]
