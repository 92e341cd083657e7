"""The shards of a corpus, filled, in order: from an earlier run, by this process, or by one process per device."""

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.text_lines import write_lines
from tasks.filling.filled_corpus import CorpusFiller, FilledShard, FillingTally, Shard
from tasks.filling.shards.shard_store import ShardStore
from tasks.filling.shards.shard_workers import Device, ShardWorkers

_AHEAD_PER_DEVICE = 4
"""So many shards per device may wait for their turn behind one that is slow: a bound on memory."""


@dataclass
class FilledCorpus:
    """What was done to fill a corpus."""

    shards: int = 0
    resumed_shards: int = 0
    """Of these, those that an earlier run had finished."""
    markers: int = 0
    """Filled by this run."""
    seconds: float = 0.0
    """Of this run."""
    forward_seconds: float | None = None
    """Inside the model in this run, summed over devices; ``None`` without a model, or where nothing was left to do."""


def fill_corpus(
    shards: Iterable[Shard],
    output: str | Path,
    make_filler: Callable[[], CorpusFiller],
    devices: Sequence[Device],
    store: ShardStore | None,
    tally: FillingTally,
    advance: Callable[[int], object],
) -> FilledCorpus:
    """Write the filled lines to ``output`` and count them in ``tally``; the rest as for ``filled_shards``.

    With a ``store`` the output is put together from it at the end, so that nothing half-written lies beside it for
    hours, or for ever where the process is killed.
    """
    done = FilledCorpus()
    started = time.perf_counter()

    def counted(filled: FilledShard) -> FilledShard:
        tally.add_plain(filled.tally)
        done.shards += 1
        if filled.resumed:
            done.resumed_shards += 1
            return filled
        done.markers += filled.tally["markers"]
        if filled.forward_seconds is not None:
            done.forward_seconds = (done.forward_seconds or 0.0) + filled.forward_seconds
        return filled

    with contextlib.closing(filled_shards(shards, make_filler, devices, store, advance)) as results:
        if store is None:
            write_lines(output, (line for filled in results for line in counted(filled).lines))
        else:
            for filled in results:
                counted(filled)
            write_lines(output, store.lines(done.shards))
    done.seconds = time.perf_counter() - started
    return done


def filled_shards(
    shards: Iterable[Shard],
    make_filler: Callable[[], CorpusFiller],
    devices: Sequence[Device],
    store: ShardStore | None,
    advance: Callable[[int], object] = lambda slots: None,
) -> Generator[FilledShard, None, None]:
    """Yield the filled shards in the order of the corpus; each is in ``store``, if there is one, before that.

    The filler is made when a shard wants it: where an earlier run has filled all, no model is loaded. With one device
    everything happens in this process. ``advance`` is called with the number of slots just filled.
    """
    if len(devices) > 1:
        yield from _by_workers(iter(shards), make_filler, devices, store, advance)
        return
    filler: CorpusFiller | None = None
    for shard in shards:
        filled = store.load(shard.index) if store else None
        if filled is None:
            if filler is None:
                filler = make_filler()
            filled = filler.fill_shard(shard, advance)
            if store:
                store.save(filled)
        yield filled


def _by_workers(
    shards: Iterator[Shard],
    make_filler: Callable[[], CorpusFiller],
    devices: Sequence[Device],
    store: ShardStore | None,
    advance: Callable[[int], object],
) -> Iterator[FilledShard]:
    waiting: dict[int, FilledShard] = {}
    taken = given = 0
    exhausted = False
    with ShardWorkers(make_filler, devices) as workers:
        while not exhausted or workers.busy or waiting:
            while not exhausted and workers.idle and taken < given + _AHEAD_PER_DEVICE * len(devices):
                shard = next(shards, None)
                if shard is None:
                    exhausted = True
                    break
                taken += 1
                filled = store.load(shard.index) if store else None
                if filled is None:
                    workers.submit(shard)
                else:
                    waiting[shard.index] = filled
            if workers.busy and given not in waiting:
                filled = workers.next_finished()
                advance(filled.tally["fills"])
                if store:
                    store.save(filled)
                waiting[filled.index] = filled
            while given in waiting:
                yield waiting.pop(given)
                given += 1
