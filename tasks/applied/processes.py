"""Parts of a text in several processes of this machine. Results come in order, whatever the number of processes."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from tasks.errors import PassingError
from tasks.parts import Make, Work, computed, nothing
from tasks.settings.resources import ResourceSettings

_WAITING = 2
"""Parts for each process that are read before their turn, so that no process waits and memory stays small."""
_work: list[Work] = []


def computed_in_processes(
    parts: Iterable[object], make: Make, resources: ResourceSettings, *, processes: int, uses_model: bool
) -> Generator[Any, None, None]:
    """The results of all parts, in order: on the cluster in ``resources``, here, or in ``processes`` processes.

    ``PassingError`` if a process dies, as when memory runs out.
    """
    if resources.cluster or processes == 1:
        yield from computed(parts, make, resources, uses_model=uses_model)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _begin, (make,)) as pool:
        waiting: deque[Future[Any]] = deque()
        try:
            for part in parts:
                waiting.append(pool.submit(_one, part))
                if len(waiting) > _WAITING * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise PassingError(
                "a process that masks and fills has died, as when memory runs out. Run the command again, with fewer "
                "--processes; it goes on where it was"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(make: Make) -> None:
    """Load models, and end when the parent does, in whatever way it ends."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    _work.append(make())


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _one(part: object) -> Any:  # noqa: ANN401 - what the work returns
    return _work[0](part, nothing)
