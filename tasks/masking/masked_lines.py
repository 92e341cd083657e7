"""Masked lines of a text: as a stream in this process, or in parts on a cluster, with the same bytes.

A technique that works line by line gets the same parts of a text either way, so its batches hold the same lines. Three
cases stay in this process: a stream, a technique that learns from the text, and a technique that only looks words up
(sending its lines to workers would take longer).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.text_lines import is_stream, read_lines
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import MaskingTally, Technique
from tasks.parts import PART_LINES, Advance, Work, blocks, computed
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.masking.mask import MaskFiles

_Masked = tuple[str, list[MaskedSpan]]
_Part = tuple[int, list[str]]
"""Number of a part, and its lines."""


@dataclass(frozen=True)
class MaskedPart:
    """Result of a worker for one part."""

    lines: list[_Masked]
    tally: MaskingTally
    counters: list[Counter[Any]]
    """Counters of the technique for this part."""


def masked_lines(
    technique: Technique,
    lines: Iterable[str],
    tally: MaskingTally,
    settings: TechniqueSettings,
    files: "MaskFiles",
    resources: ResourceSettings,
    *,
    with_spans: bool,
) -> Iterator[_Masked]:
    """Masked lines as ``Technique.mask`` does; raises the errors of ``computed``."""
    if (
        not resources.cluster
        or not (technique.is_by_line and technique.is_costly)
        or any(map(is_stream, (files.input, files.output)))
    ):
        yield from _here(technique, iter(lines), tally, settings, with_spans)
        return
    make = partial(masker, settings, files.word_counts, resources.threads, with_spans)
    parts = enumerate(blocks(lines, PART_LINES))
    for part in computed(parts, make, resources, uses_model='"kind":"transformers"' in settings.model_dump_json()):
        tally.add(part.tally)
        for whole, counter in zip(technique.counters(), part.counters, strict=True):
            whole.update(counter)
        yield from part.lines


def _here(
    technique: Technique, lines: Iterator[str], tally: MaskingTally, settings: TechniqueSettings, with_spans: bool
) -> Iterator[_Masked]:
    markers = settings.markers
    options = {"with_spans": with_spans, "merge": markers.merge}
    if not technique.is_by_line:
        yield from technique.mask(lines, markers.style, tally, **options)
        return
    for line in lines:
        yield from technique.mask(chain([line], islice(lines, PART_LINES - 1)), markers.style, tally, **options)
        technique.lines_before += PART_LINES


def masker(
    settings: TechniqueSettings,
    word_counts: str | None,
    threads: int,
    with_spans: bool,
    learned_from: str | None = None,
) -> Work:
    """The function that masks a part, of a number and lines, into a ``MaskedPart``; it loads the technique.

    ``learned_from``: text for a technique that learns from one.
    """
    technique = settings.build(word_counts, threads)
    if learned_from:
        technique.learn(read_lines(learned_from))

    def masked(part: _Part, advance: Advance) -> MaskedPart:
        number, lines = part
        technique.lines_before, tally = number * PART_LINES, MaskingTally()
        markers = settings.markers
        found = list(technique.mask(lines, markers.style, tally, with_spans=with_spans, merge=markers.merge))
        counted = list(map(Counter, technique.counters()))
        for counter in technique.counters():
            counter.clear()
        return MaskedPart(found, tally, counted)

    return masked
