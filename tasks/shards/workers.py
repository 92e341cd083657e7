"""Workers, each with a model of its own: of the shards that are submitted, the earliest goes to whichever is idle.

Here: one process per device, started afresh (spawn), since a CUDA context does not survive a fork. It speaks with this
process through a pipe of its own and never with the others: one that dies, however it dies, is noticed at once and
holds nothing that another waits for. If this process dies, the workers end too. Those of a cluster: ``ray_workers``.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from queue import PriorityQueue, SimpleQueue
from typing import Any, Protocol

from tasks.errors import PalimpsestError, ParameterError, ResourceError, StageError
from tasks.shards.shard_store import ShardStore

Advance = Callable[[int], object]
Work = Callable[[Any, Advance], Any]
"""Computes a shard; calls the second argument with the number of steps just done."""
Make = Callable[[], Work]
_SECONDS_TO_END = 5
_NO_MORE = -1
_MOST_LOSSES = 3
"""So many workers of a cluster may die one after the other of a shard, or before they finish any."""


@dataclass(frozen=True)
class Device:
    """Where a worker runs."""

    name: str
    """For messages: ``GPU 1``, ``processor``."""
    visible: str | None = None
    """What ``CUDA_VISIBLE_DEVICES`` shall be, so that it sees this GPU alone; ``None``: as it is."""


class WorkerLost(Exception):
    """A worker has died that others can stand in for."""


class Worker(Protocol):
    """What computes one shard at a time; a thread waits for it."""

    def begin(self) -> None:
        """Return when it can have a shard."""

    def compute(self, index: int, shard: object) -> object:
        """What came of a shard, which is kept by now; raises the worker's error, or ``WorkerLost``."""

    def end(self) -> None:
        """End it, whatever it does."""


class ShardWorkers:
    """Workers for the time of a ``with`` block."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._threads = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in workers]
        self._given: PriorityQueue[tuple[int, object]] = PriorityQueue()
        self._answers: SimpleQueue[tuple[int, Any] | BaseException] = SimpleQueue()
        self._ready: set[Worker] = set()
        self._is_over = False
        self._losses: Counter[int] = Counter()

    def __enter__(self) -> "ShardWorkers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over = True
        for _ in self._workers:
            self._given.put((_NO_MORE, None))
        for worker in self._workers:
            worker.end()
        for thread in self._threads:
            thread.join(_SECONDS_TO_END)

    @property
    def number(self) -> int:
        """How many are there by now."""
        return max(1, len(self._ready))

    def submit(self, index: int, shard: object) -> None:
        """Give a shard to the next that is idle."""
        self._given.put((index, shard))

    def next_finished(self) -> tuple[int, Any]:
        """Wait for a shard, whichever is finished first: its number, and what came of it.

        Raises what a worker raised, with its device; ``ResourceError`` where one ended without a word.
        """
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _serve(self, worker: Worker) -> None:
        losses = 0
        while losses < _MOST_LOSSES:
            try:
                worker.begin()
                self._ready.add(worker)
                while self._has_served(worker):
                    losses = 0
                return
            except WorkerLost:
                losses += 1
                self._ready.discard(worker)
            except BaseException as error:
                self._answers.put(error)
                return
        if not self._is_over:
            print("warning: a worker of the cluster cannot be started; the others go on", file=sys.stderr)

    def _has_served(self, worker: Worker) -> bool:
        index, shard = self._given.get()
        if index == _NO_MORE:
            return False
        try:
            self._answers.put((index, worker.compute(index, shard)))
        except WorkerLost:
            self._losses[index] += 1
            if self._losses[index] == _MOST_LOSSES:
                raise ResourceError(
                    f"{_MOST_LOSSES} workers of the cluster have died of shard {index + 1}, as they do when memory "
                    "runs out; the same command goes on with the shards that are finished"
                ) from None
            self._given.put((index, shard))
            raise
        return True


class LocalWorker:
    """See ``Worker``: a process of this machine, started when there is a shard for it."""

    def __init__(self, make: Make, device: Device, store: ShardStore | None) -> None:
        self._make, self._device, self._store = make, device, store
        self._lock, self._is_over = threading.Lock(), False
        self._process: Any = None

    def begin(self) -> None:
        """It starts with its first shard."""

    def compute(self, index: int, shard: object) -> object:
        """``ResourceError`` where the process has ended."""
        with self._lock:
            if self._is_over:
                raise WorkerLost
            if self._process is None:
                self._start()
        # If it has ended, what it said before that, if anything, is read.
        with contextlib.suppress(OSError):
            self._connection.send(shard)
        if self._connection not in wait([self._connection, self._process.sentinel]):
            raise self._ended()
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._ended() from None
        if isinstance(answer, PalimpsestError):
            raise answer
        if self._store:
            self._store.save(index, answer)
        return answer

    def end(self) -> None:
        """Kill the process."""
        with self._lock:
            self._is_over = True
            if self._process is not None:
                self._process.kill()
                self._process.join()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._make, self._device), daemon=True)
        self._process.start()
        theirs.close()

    def _ended(self) -> ResourceError:
        self._process.join(_SECONDS_TO_END)
        status = self._process.exitcode
        if status is not None and status < 0:
            reason = f"was killed by {signal.Signals(-status).name}"
            reason += ", as the system does when memory runs out" if status == -signal.SIGKILL else ""
        else:
            reason = f"ended with status {status}"
        return ResourceError(
            f"the worker on {self._device.name} {reason}; the same command goes on with the shards that are finished"
        )


def nothing(steps: int) -> None:
    """A worker shows no progress."""


def _work(connection: Connection, make: Make, device: Device) -> None:
    """What a process does: compute the shards that come through the pipe until it is closed."""
    # Ctrl-C reaches every process of the terminal; the parent's handling is enough.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if device.visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device.visible
    try:
        work = make()
        while True:
            connection.send(work(connection.recv(), nothing))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:
        connection.send(error_of(error, device.name))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def error_of(error: BaseException, name: str) -> PalimpsestError:
    """What may be said of a worker's error; ``name``: of its device."""
    if isinstance(error, PalimpsestError):
        return error
    # The message may quote text; where it was raised does not.
    if os.environ.get("PALIMPSEST_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
    message = f"the worker on {name} failed: {type(error).__name__} at {place}"
    return StageError(f"{message}; PALIMPSEST_DEBUG=1 shows the whole error")


def devices_of(wanted: int, *, uses_model: bool) -> list[Device]:
    """So many devices, as ``resources.devices`` asks for.

    Where there is no GPU, or no model that would run on one, so many processes share the processor's cores. Raises
    ``ParameterError`` where there are fewer GPUs than asked for.
    """
    if wanted == 1:
        return [Device("the first device")]
    gpus = _visible_gpus() if uses_model else []
    if not gpus:
        return [Device(f"the processor (process {index} of {wanted})") for index in range(1, wanted + 1)]
    if wanted > len(gpus):
        raise ParameterError(f"resources.devices: {wanted} is more than the GPUs that are there ({len(gpus)})")
    return [Device(f"GPU {gpu}", gpu) for gpu in gpus[:wanted]]


def _visible_gpus() -> list[str]:
    """What ``CUDA_VISIBLE_DEVICES`` calls each GPU that this process may use."""
    import torch

    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else list(map(str, range(count)))
