"""A corpus filled shard by shard: what is written of it, and what is counted.

A fill may be interrupted: the next run goes on where this one ended, with the shards that are kept under a key
(``fill_key``) of everything that decides the result. Filled text may still hold private words that were not masked.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import empty_text, is_stream, read_documents, write_lines
from tasks.errors import CorpusError
from tasks.files.clone_key import clone_key
from tasks.filling.context import FillContext
from tasks.filling.fill import FillFiles
from tasks.filling.filled_corpus import FilledShard, FillingTally, read_copies, read_shards
from tasks.filling.fillers.filler_folder import base_of
from tasks.filling.restoration import Restoration, Rounding
from tasks.filling.settings import ClassAware
from tasks.records.stage_report import content_hash
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings
from tasks.shards.sharded_work import Finished, ShardedWork
from tasks.shards.work_key import model_state, work_key


@dataclass
class FilledCorpus:
    """What was done to fill a corpus."""

    tally: FillingTally
    work: ShardedWork[FilledShard]
    shards: int = 0
    resumed_shards: int = 0
    """Of these, those that an earlier run had finished."""
    markers: int = 0
    """Filled by this run."""
    seconds: float = 0.0
    """Of this run."""
    forward_seconds: float | None = None
    """Inside the model in this run, summed over devices; ``None`` without a model, or where nothing was left to do."""

    def counted(self, filled: FilledShard, resumed: bool) -> list[str]:
        """Count a shard; its lines."""
        self.tally.add_plain(filled.tally)
        self.shards += 1
        if resumed:
            self.resumed_shards += 1
        else:
            self.markers += filled.tally["markers"]
            if filled.forward_seconds is not None:
                self.forward_seconds = (self.forward_seconds or 0.0) + filled.forward_seconds
        return filled.lines

    def lines(self, finished: Generator[Finished[FilledShard], None, None]) -> Iterable[str]:
        """The filled lines; where shards are kept, only when all are."""
        if self.work.store is None:
            return (line for each in finished for line in self.counted(*each))
        for each in finished:
            self.counted(*each)
        return (line for index in range(self.shards) for line in self.work.store.load(index).lines)

    def measured(self) -> dict[str, Any]:
        """What the report says; what the sidecar alone tells is rounded."""
        tally, restoration, overall, counts = self.tally, None, {}, {**self.tally.counts}
        if tally.restoration:
            rounded = Rounding(clone_key("restoration"), tally.as_plain())
            restoration = tally.restoration.measured(rounded)
            overall = restoration["overall"]
            # Who reads two reports would read a place off these too.
            counts |= {name: round(rounded(counts[name])) for name in counts if name.startswith("forbidden_")}
        return {
            "lines": tally.lines,
            "markers": tally.markers,
            "fills": tally.fills,
            "fallback_count": tally.fallbacks,
            "distinct_fills": len(tally.words),
            "off_list_share": tally.off_list_share,
            "kept_words": len(tally.kept),
            "candidate_words": tally.candidate_words,
            "restoration_rate": overall.get("rate"),
            "expected_restoration_by_frequency": overall.get("expected_by_frequency"),
            "restoration": restoration,
            **counts,
            "shards": self.shards,
            "resumed_shards": self.resumed_shards,
            "filling_seconds": round(self.seconds, 3),
            "markers_per_second": round(self.markers / self.seconds, 1) if self.markers else None,
            "forward_seconds": None if self.forward_seconds is None else round(self.forward_seconds, 3),
        }


def fill_corpus(context: FillContext, resources: ResourceSettings, advance: Callable[[int], object]) -> FilledCorpus:
    """Write the filled text; ``advance`` is called with the number of slots just filled.

    Where there are several shards, each is kept as soon as it is finished, and the output is put together from them at
    the end, so that nothing half-written lies beside it for hours, or for ever where the process is killed.
    """
    files, copies = context.files, context.method.copies
    shards = read_copies(
        copies,
        lambda: read_shards(
            context.lines(),
            read_sidecar(context.sidecar) if context.sidecar else None,
            read_documents(files.documents) if files.documents else None,
        ),
    )
    work: ShardedWork[FilledShard] = ShardedWork(
        shards,
        context.shard_filler,
        resources,
        uses_model=context.method.uses_filler,
        output=None if any(map(is_stream, (files.input, files.output))) else files.output,
        key=lambda: fill_key(context),
    )
    tally = FillingTally(context.kept, Restoration(None, copies) if context.sidecar else None)
    done, started = FilledCorpus(tally, work), time.perf_counter()
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(work.close)
        with contextlib.closing(work.finished(advance, lambda filled: filled.tally["fills"])) as finished:
            write_lines(files.output, _masked(done.lines(finished), done, files), private=True)
        on_failure.pop_all()
    done.seconds = time.perf_counter() - started
    return done


def _masked(lines: Iterable[str], done: FilledCorpus, files: FillFiles) -> Iterator[str]:
    """The lines; ``CorpusError`` at their end where nothing in them was masked, so that no raw text becomes a fill."""
    is_empty = True
    for line in lines:
        is_empty = is_empty and not line.strip()
        yield line
    if is_empty:
        raise empty_text(files.input)
    if not done.tally.markers:
        raise CorpusError(
            f"{files.input!r} has no marker such as [MASK], so filling would copy it as it is; give a text that "
            "'palimpsest mask' wrote"
        )


def fill_key(context: FillContext) -> str:
    """One hash of everything that decides what a fill writes: two runs with the same key write the same bytes."""
    method, files = context.method, context.files
    models = [name for name in (files.filler, base_of(files.filler) if files.filler else None) if name]
    tagger = method.class_check.tagger if isinstance(method, ClassAware) and method.matches_classes else None
    models += [tagger.model] if tagger else []
    decides = {
        "settings": as_plain(method),
        "seed": context.seed,
        "content": {option: content_hash(path) for option, path in files.read() if path != files.filler},
        "models": {name: model_state(name) for name in models},
        "counted": context.learned.measured.get("counted_frequencies"),
    }
    return work_key(decides, context.threads, uses_model=bool(files.filler))
