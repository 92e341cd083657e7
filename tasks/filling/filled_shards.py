"""A corpus filled shard by shard: what is written of it, and what is counted.

Filled text may still hold private words that were not masked.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import empty_text, is_stream, read_documents, write_lines
from tasks.errors import CorpusError
from tasks.files.clone_key import clone_key
from tasks.filling.context import FillContext
from tasks.filling.fill import FillFiles
from tasks.filling.filled_corpus import FilledShard, FillingTally, read_copies, read_shards
from tasks.filling.restoration import Restoration, Rounding
from tasks.parts import computed
from tasks.settings.resources import ResourceSettings


@dataclass
class FilledCorpus:
    """What was done to fill a corpus."""

    tally: FillingTally
    seconds: float = 0.0
    forward_seconds: float | None = None
    """Inside the model, summed over workers; ``None`` without a model."""

    def lines(self, shards: Iterable[FilledShard]) -> Iterator[str]:
        """The filled lines, each shard counted as it comes."""
        for filled in shards:
            self.tally.add_plain(filled.tally)
            if filled.forward_seconds is not None:
                self.forward_seconds = (self.forward_seconds or 0.0) + filled.forward_seconds
            yield from filled.lines

    def measured(self) -> dict[str, Any]:
        """What the report says; what the sidecar alone tells is rounded."""
        tally, restoration, overall = self.tally, None, {}
        if tally.restoration:
            rounded = Rounding(clone_key("restoration"), tally.as_plain())
            restoration = tally.restoration.measured(rounded)
            overall = restoration["overall"]
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
            **tally.counts,
            "filling_seconds": round(self.seconds, 3),
            "markers_per_second": round(tally.markers / self.seconds, 1) if tally.markers else None,
            "forward_seconds": None if self.forward_seconds is None else round(self.forward_seconds, 3),
        }


def fill_corpus(context: FillContext, resources: ResourceSettings, advance: Callable[[int], object]) -> FilledCorpus:
    """Write the filled text; ``advance`` is called with the number of slots just filled.

    Streams are filled in this process, whatever ``resources`` says.
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
    if any(map(is_stream, (files.input, files.output))):
        resources = resources.model_copy(update={"cluster": None})
    uses_model = context.method.uses_filler
    filled = computed(shards, context.shard_filler, resources, uses_model=uses_model, advance=advance)
    tally = FillingTally(context.kept, Restoration(None, copies) if context.sidecar else None)
    done, started = FilledCorpus(tally), time.perf_counter()
    write_lines(files.output, _masked(done.lines(filled), done, files), private=True)
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
