"""Masked lines of a text: as a stream in this process, or in parts on a cluster, with the same bytes.

A technique that works line by line gets the same parts of a text either way, so its batches hold the same lines. Three
cases stay in this process: a stream, a technique that learns from the text, and a technique that only looks words up
(sending its lines to workers would take longer).
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.text_lines import is_stream, read_lines
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import MaskingTally, Technique
from tasks.parts import PART_LINES, Advance, Work, blocks, computed
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.masking.mask import MaskFiles

_Masked = tuple[str, list[MaskedSpan]]


class MaskedPart(NamedTuple):
    """Result of a worker for one part."""

    lines: list[_Masked]
    tally: MaskingTally


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
    style, merge = settings.markers.style, settings.markers.merge
    parts = blocks(lines, PART_LINES) if technique.is_by_line else [lines]
    on_cluster = resources.cluster and technique.is_by_line and technique.is_costly
    if not on_cluster or any(map(is_stream, (files.input, files.output))):
        for part in parts:
            yield from technique.mask(part, style, tally, with_spans=with_spans, merge=merge)
        return
    make = partial(masker, settings, files.word_counts, resources.threads, with_spans)
    uses_model = '"kind":"transformers"' in settings.model_dump_json()
    for masked in computed(enumerate(blocks(lines, PART_LINES)), make, resources, uses_model=uses_model):
        tally.add(masked.tally)
        yield from masked.lines


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

    def masked(part: tuple[int, list[str]], advance: Advance) -> MaskedPart:
        style, merge, tally = settings.markers.style, settings.markers.merge, MaskingTally()
        return MaskedPart(list(technique.mask(part[1], style, tally, with_spans=with_spans, merge=merge)), tally)

    return masked
