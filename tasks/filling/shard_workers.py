"""One process per device, each with a filler of its own; shards go out to whichever is idle.

A process is started afresh (spawn), since a CUDA context does not survive a fork. It speaks with this one through a
pipe of its own and never with the others: one that dies, however it dies, is noticed at once and holds nothing that
another waits for. If this process dies, the workers end too.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from tasks import errors
from tasks.filling.filled_corpus import CorpusFiller, FilledShard, Shard

_SECONDS_TO_END = 5


@dataclass(frozen=True)
class Device:
    """Where a filler runs."""

    name: str
    """For messages: ``GPU 1``, ``processor``."""
    visible: str | None = None
    """What ``CUDA_VISIBLE_DEVICES`` shall be, so that it sees this GPU alone; ``None``: as it is."""


@dataclass(frozen=True)
class _Failure:
    """Why a worker cannot go on."""

    kind: str
    message: str


@dataclass
class _Worker:
    device: Device
    process: SpawnProcess
    connection: Connection
    busy: bool = False


class ShardWorkers:
    """Workers for the time of a ``with`` block; each starts when there is a shard for it."""

    def __init__(self, make_filler: Callable[[], CorpusFiller], devices: Sequence[Device]) -> None:
        """``make_filler`` is called once in each process, so it must be picklable."""
        self._make_filler, self._devices = make_filler, devices
        self._workers: list[_Worker] = []

    def __enter__(self) -> "ShardWorkers":
        return self

    def __exit__(self, *_error: object) -> None:
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            if worker.busy:
                worker.process.kill()
            worker.process.join(_SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers.clear()

    @property
    def busy(self) -> int:
        """How many have a shard."""
        return sum(worker.busy for worker in self._workers)

    @property
    def idle(self) -> bool:
        """Whether one waits for a shard."""
        return self.busy < len(self._devices)

    def submit(self, shard: Shard) -> None:
        """Give a shard to an idle worker."""
        worker = next((worker for worker in self._workers if not worker.busy), None)
        if worker is None:
            worker = self._start(self._devices[len(self._workers)])
            self._workers.append(worker)
        worker.busy = True
        # If it has ended, next_finished reads what it said before that, if anything.
        with contextlib.suppress(OSError):
            worker.connection.send(shard)

    def next_finished(self) -> FilledShard:
        """Wait for a shard, whichever is finished first.

        Raises what a worker raised, with its device; ``ResourceError`` where one ended without a word.
        """
        while True:
            watched: list[Any] = [worker.connection for worker in self._workers]
            watched += [worker.process.sentinel for worker in self._workers]
            ready = set(wait(watched))
            for worker in self._workers:
                if worker.connection in ready:
                    answer = self._receive(worker)
                    if isinstance(answer, FilledShard):
                        worker.busy = False
                        return answer
                elif worker.process.sentinel in ready:
                    raise self._ended(worker)

    def _start(self, device: Device) -> _Worker:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._make_filler, device), daemon=True)
        process.start()
        theirs.close()
        return _Worker(device, process, mine)

    def _receive(self, worker: _Worker) -> FilledShard:
        try:
            answer = worker.connection.recv()
        except (EOFError, ConnectionError):
            raise self._ended(worker) from None
        if isinstance(answer, FilledShard):
            return answer
        raise getattr(errors, answer.kind)(answer.message)

    def _ended(self, worker: _Worker) -> errors.ResourceError:
        worker.process.join(_SECONDS_TO_END)
        status = worker.process.exitcode
        if status is not None and status < 0:
            reason = f"was killed by {signal.Signals(-status).name}"
            reason += ", as the system does when memory runs out" if status == -signal.SIGKILL else ""
        else:
            reason = f"ended with status {status}"
        return errors.ResourceError(
            f"the worker on {worker.device.name} {reason}; the same command goes on with the shards that are finished"
        )


def _work(connection: Connection, make_filler: Callable[[], CorpusFiller], device: Device) -> None:
    """What a worker does: fill the shards that come through the pipe until it is closed."""
    # Ctrl-C reaches every process of the terminal; the parent's handling is enough.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if device.visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device.visible
    try:
        filler = make_filler()
        while True:
            connection.send(filler.fill_shard(connection.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except errors.PalimpsestError as error:
        connection.send(_Failure(type(error).__name__, str(error)))
    except Exception as error:
        # The message may quote text; where it was raised does not.
        if os.environ.get("PALIMPSEST_DEBUG") == "1":
            traceback.print_exc(file=sys.stderr)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
        message = f"the worker on {device.name} failed: {type(error).__name__} at {place}"
        connection.send(_Failure("StageError", f"{message}; PALIMPSEST_DEBUG=1 shows the whole error"))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


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
        raise errors.ParameterError(f"resources.devices: {wanted} is more than the GPUs that are there ({len(gpus)})")
    return [Device(f"GPU {gpu}", gpu) for gpu in gpus[:wanted]]


def _visible_gpus() -> list[str]:
    """What ``CUDA_VISIBLE_DEVICES`` calls each GPU that this process may use."""
    import torch

    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else list(map(str, range(count)))
