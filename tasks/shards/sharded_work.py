"""A text in shards, in their order: from an earlier run, by this process, or by several workers.

Work may be interrupted: the next run goes on where this one ended, with the shards that ``ShardStore`` has. What stands
in a shard is counted from the start of the text, and so is what stands in a batch: the result does not depend on who
computes it. What is no function of its shard alone must not be cut.
"""

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from tasks.settings.resources import ResourceSettings
from tasks.shards.shard_store import ShardStore
from tasks.shards.workers import Advance, LocalWorker, Make, ShardWorkers, Worker, devices_of

DEFAULT_WORK_FOLDER = ".palimpsest/shards"
SHARD_LINES = 4096
_AHEAD_PER_WORKER = 4
"""So many shards per worker may wait for their turn behind one that is slow: a bound on memory."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Consecutive lists of ``size`` items, the last one shorter."""
    iterator = iter(items)
    while block := list(itertools.islice(iterator, size)):
        yield block


class Finished(NamedTuple, Generic[Result]):
    """A shard that is done."""

    result: Result
    resumed: bool
    """Whether an earlier run computed it."""


class ShardedWork(Generic[Result]):
    """The shards of one text; whoever has used them removes or closes what is kept of them."""

    def __init__(
        self,
        shards: Iterable[object],
        make: Make,
        resources: ResourceSettings,
        *,
        uses_model: bool,
        output: str | None,
        key: Callable[[], str],
    ) -> None:
        """``make`` is called once in each worker that gets a shard, so it must be picklable; what it returns computes
        a shard. A single shard is all or nothing: nothing of it is kept, and this process computes it.

        ``output`` and ``key`` (of ``work_key``) say what the shards are kept for; without an output nothing is kept,
        and no cluster takes part.

        Raises what ``ShardStore`` and ``devices_of`` do.
        """
        rest = iter(shards)
        first = list(itertools.islice(rest, 2))
        self.is_cut = len(first) > 1
        self._shards, self._make = itertools.chain(first, rest), make
        self._resources, self._uses_model = resources, uses_model
        self._devices = devices_of(resources.devices if self.is_cut else 1, uses_model=uses_model)
        self.store: ShardStore | None = None
        if self.is_cut and output is not None:
            folder = resources.work_folder or DEFAULT_WORK_FOLDER
            self.store = ShardStore(folder, output, key(), resume=resources.resume)

    def finished(
        self, advance: Advance = lambda steps: None, steps: Callable[[Result], int] = lambda result: 0
    ) -> Generator[Finished[Result], None, None]:
        """The shards in their order; each is kept before that.

        ``advance`` is called with the number of steps just done; ``steps``: how many a shard that a worker did has.
        """
        if len(self._devices) > 1 or (self.store and self._resources.cluster):
            yield from self._by_workers(advance, steps)
            return
        work = None
        for index, shard in enumerate(self._shards):
            found = self._kept(index)
            if found is None:
                # Where an earlier run has computed all, no model is loaded.
                work = work or self._make()
                found = Finished(work(shard, advance), False)
                if self.store:
                    self.store.save(index, found.result)
            yield found

    def remove(self) -> None:
        """Remove what is kept: the output is complete."""
        if self.store:
            self.store.remove()

    def close(self) -> None:
        """Leave what is kept to the next run."""
        if self.store:
            self.store.close()

    def _kept(self, index: int) -> Finished[Result] | None:
        found = self.store.load(index) if self.store else None
        return None if found is None else Finished(found, True)

    def _workers(self) -> list[Worker]:
        """One is always here, so that nothing waits for a place in the cluster."""
        here: list[Worker] = [LocalWorker(self._make, device, self.store) for device in self._devices]
        cluster, threads = self._resources.cluster, self._resources.threads
        if not (self.store and cluster):
            return here
        from tasks.shards.ray_workers import ray_workers

        return [*here, *ray_workers(cluster, self.store.folder, self._make, threads, uses_model=self._uses_model)]

    def _by_workers(self, advance: Advance, steps: Callable[[Result], int]) -> Iterator[Finished[Result]]:
        waiting: dict[int, Finished[Result]] = {}
        shards = enumerate(self._shards)
        taken = given = at_work = 0
        exhausted = False
        with ShardWorkers(self._workers()) as workers:
            while not exhausted or at_work or waiting:
                while not exhausted and taken < given + _AHEAD_PER_WORKER * workers.number:
                    index, shard = next(shards, (taken, None))
                    if shard is None:
                        exhausted = True
                        break
                    taken += 1
                    if kept := self._kept(index):
                        waiting[index] = kept
                    else:
                        workers.submit(index, shard)
                        at_work += 1
                if at_work and given not in waiting:
                    index, result = workers.next_finished()
                    at_work -= 1
                    advance(steps(result))
                    waiting[index] = Finished(result, False)
                while given in waiting:
                    yield waiting.pop(given)
                    given += 1
