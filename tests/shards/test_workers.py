import functools
import os
import signal
import time

import pytest

from tasks.errors import CorpusError, ParameterError, ResourceError, StageError
from tasks.settings.resources import ResourceSettings
from tasks.shards.sharded_work import ShardedWork
from tasks.shards.workers import Device, devices_of

DEVICES = [Device("the processor (process 1 of 2)"), Device("the processor (process 2 of 2)")]
SECONDS = 10
"""A worker's death is noticed much sooner; starting two processes on a busy machine may take this long."""


RESOURCES = ResourceSettings(threads=1, parallel_stages=1, devices=2)


def scripted(failed=None):
    """A worker that does with a shard what it says; ``failed``: why it cannot be made."""
    if failed is not None:
        raise failed

    def work(shard, advance):
        what, _, value = shard.partition(" ")
        if what == "wait":
            time.sleep(float(value))
        elif what == "user-error":
            raise CorpusError("line 7: is not what it should be")
        elif what == "defect":
            raise ValueError("private words")
        elif what == "die":
            os.kill(os.getpid(), int(value))
        elif what == "exit":
            os._exit(int(value))
        return f"{shard} done"

    return work


def started(shards, make=scripted):
    work = ShardedWork(shards, make, RESOURCES, uses_model=False, output=None, key=str)
    return work.finished()


def run(*shards, make=scripted):
    return [shard.result for shard in started(shards, make)]


def test_the_order_is_that_of_the_text_whatever_takes_longest():
    lines = ["wait 0.3", *(["wait 0"] * 20), "wait 0.1", "wait 0"]
    assert run(*lines) == [f"{line} done" for line in lines]
    assert run() == []


def test_a_worker_that_dies_is_named_at_once():
    for line, error, message in [
        ("user-error", CorpusError, "^line 7: is not what it should be$"),
        ("defect", StageError, "the worker on the processor .* failed: ValueError at test_workers.py:"),
        (f"die {int(signal.SIGKILL)}", ResourceError, "process . of 2. was killed by SIGKILL, as the system does when"),
        (f"die {int(signal.SIGSEGV)}", ResourceError, "was killed by SIGSEGV; the same command goes on"),
        ("exit 3", ResourceError, "ended with status 3"),
    ]:
        clock = time.monotonic()
        # The other worker is at work for much longer than it takes to notice.
        with pytest.raises(error, match=message) as caught:
            run("wait 60", line, "wait 60")
        assert time.monotonic() - clock < SECONDS
        assert "private" not in str(caught.value)


def test_a_worker_that_cannot_be_made_says_why():
    make = functools.partial(scripted, ParameterError("k=11 is more than the 10 words"))
    with pytest.raises(ParameterError, match=r"^k=11 is more than the 10 words$"):
        run("wait 0", "wait 0", make=make)


def test_few_shards_run_ahead_of_a_slow_one():
    taken = []

    def shards():
        for index in range(100):
            taken.append(index)
            yield "wait 0.5" if index == 0 else "wait 0"

    results = started(shards())
    next(results)
    # Memory is bounded by the number of devices, not by the length of the text.
    assert 3 <= len(taken) <= 9
    results.close()


def test_devices(monkeypatch):
    import torch  # here, since each worker that starts imports this module

    assert devices_of(2, uses_model=False) == DEVICES
    assert len(devices_of(1, uses_model=True)) == 1
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [device.visible for device in devices_of(2, uses_model=True)] == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7,GPU-1a")
    assert [device.visible for device in devices_of(3, uses_model=True)] == ["5", "7", "GPU-1a"]
    with pytest.raises(ParameterError, match=r"resources.devices: 4 is more than the GPUs that are there \(3\)"):
        devices_of(4, uses_model=True)
