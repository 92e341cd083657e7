"""Starting one process per device, and ending all of them as soon as one has failed.

Each process runs the same command with torchrun's variables in its environment. This process only watches: what a
failed process has to say is raised here, so that the user reads one line.
"""

import ctypes
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from tasks.errors import PalimpsestError, ResourceError, StageError
from tasks.training.ranks.plan import RankPlan

_SET_PARENT_DEATH_SIGNAL = 1
_TERMINATED = 128 + signal.SIGTERM
"""Status of a process that SIGTERM has ended after it had written what it wanted to keep."""
_GRACE_SECONDS = 2.0
"""So long the others may take to end by themselves: the first to be seen dead is not always the cause."""
_TERMINATION_SECONDS = 600.0
"""So long all of them may take to write a checkpoint after SIGTERM."""


class LostRankError(ResourceError):
    """Another process of the same training has ended."""


def start_ranks(run: Callable[[], Any], plan: RankPlan) -> None:
    """Run ``run()`` in ``plan.devices`` processes and wait for them.

    ``run`` can be pickled. The first failure ends all: an error of the user is raised as it was, a process
    that a signal ended is named in a ``ResourceError``, and any other failure, which has printed its own line, in a
    ``StageError``. SIGTERM and interrupts are handed on; where SIGTERM has ended them, this process leaves with 143.
    """
    context = multiprocessing.get_context("spawn")
    port = _free_port()
    processes: list[Any] = []
    channels: list[Connection] = []
    with _handed_on(processes) as received:
        for rank in range(plan.devices):
            channel, end = context.Pipe(duplex=False)
            process = context.Process(
                target=_rank_main, args=(run, _variables(rank, plan, port), end), name=f"rank {rank}"
            )
            process.start()
            end.close()
            processes.append(process)
            channels.append(channel)
        try:
            failed = _watch(processes)
            if failed:
                _wait_for_all(processes, _TERMINATION_SECONDS if received else _GRACE_SECONDS)
            statuses = [process.exitcode for process in processes]
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
                process.join()
    if received:
        if received[0] == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + received[0])
    if failed:
        _raise_cause(statuses, [_message_of(channel) for channel in channels])


def _variables(rank: int, plan: RankPlan, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(plan.devices),
        "LOCAL_WORLD_SIZE": str(plan.devices),
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _rank_main(run: Callable[[], Any], variables: dict[str, str], channel: Connection) -> None:
    """One process: run the command and, where a user error ends it, hand the error to the process that watches."""
    from tqdm import tqdm

    from tasks import cli, telemetry

    os.environ.update(variables)
    # By default bars share a semaphore among processes, which the system keeps when this one is killed.
    tqdm.set_lock(threading.RLock())
    _end_with_parent()
    telemetry.switch_off()
    # The terminal sends an interrupt to all processes at once; the one that watches hands it on.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        run()
    except (PalimpsestError, OSError) as error:
        channel.send(error)
        sys.exit(1)
    except Exception as error:
        sys.exit(cli.internal_error(error))


def _end_with_parent() -> None:
    """Have the system kill this process when the one that watches is killed: nothing else would tell it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _watch(processes: list[Any]) -> bool:
    """Wait until all have ended well, or one has not; says whether one has not."""
    running = {process.sentinel: process for process in processes}
    while running:
        for sentinel in wait(list(running)):
            process = running.pop(sentinel)
            process.join()
            if process.exitcode != 0:
                return True
    return False


def _wait_for_all(processes: list[Any], seconds: float) -> None:
    end = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))


def _message_of(channel: Connection) -> BaseException | None:
    try:
        return channel.recv() if channel.poll() else None
    except (EOFError, OSError):
        return None


def _raise_cause(statuses: list[int | None], errors: list[BaseException | None]) -> NoReturn:
    """Raise what stands first in the chain of causes: an error of its own, then a signal, then a lost neighbour.

    A status is ``None`` where the process had not ended by itself.
    """
    for error in errors:
        if error is not None and not isinstance(error, LostRankError):
            raise error
    for rank, status in enumerate(statuses):
        if status is not None and status < 0:
            raise ResourceError(
                f"rank {rank} of {len(statuses)} was ended by {signal.Signals(-status).name}, and the training with it "
                "(the system kills a process that takes too much memory); the same command goes on from the last "
                "checkpoint"
            )
    if _TERMINATED in statuses:
        raise SystemExit(_TERMINATED)
    for rank, status in enumerate(statuses):
        if status and errors[rank] is None:
            raise StageError(
                f"rank {rank} of {len(statuses)} ended with exit status {status}; its own message stands above"
            )
    raise next(error for error in errors if error is not None)


@contextmanager
def _handed_on(processes: list[Any]) -> Iterator[list[int]]:
    """Send SIGTERM and interrupts to the processes; yields the list of those received."""
    received: list[int] = []

    def hand_on(number: int, _: object) -> None:
        received.append(number)
        for process in processes:
            if process.is_alive():
                os.kill(process.pid, number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def lost_ranks_named(plan: RankPlan) -> Iterator[None]:
    """Turn what the network says when a process has gone into a ``LostRankError``."""
    try:
        yield
    except (RuntimeError, ConnectionError) as error:
        if plan.world_size == 1 or not _is_of_the_network(error):
            raise
        raise LostRankError(
            f"rank {plan.rank} of {plan.world_size} lost the connection to another one, which has ended; its message "
            "says why, and the same command goes on from the last checkpoint"
        ) from None


def _is_of_the_network(error: BaseException) -> bool:
    from torch import distributed

    if isinstance(error, distributed.DistError | ConnectionError):
        return True
    text = str(error)
    return any(word in text for word in ("gloo", "Gloo", "NCCL", "Connection closed", "Connection reset", "TCPStore"))
