"""The masked lines of a text: as a stream in this process, or in parts on a cluster, with the same bytes.

A technique by line is given the same parts of a text either way, so that the same lines are in a batch. A stream, a
technique that learns from the text and one that only looks words up (others would need longer to be given their lines)
stay in this process.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.text_lines import is_stream
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import MaskingTally, Technique
from tasks.parts import PART_LINES, Advance, Work, blocks, computed
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.masking.mask import MaskFiles

_Masked = tuple[str, list[MaskedSpan]]
_Part = tuple[int, list[str]]
"""Number of a part, and its lines."""


@dataclass(frozen=True)
class MaskedPart:
    """What a worker makes of a part."""

    lines: list[_Masked]
    tally: MaskingTally
    counters: list[Counter[Any]]
    """Of the technique, for this part."""


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
    """As ``Technique.mask``; raises what ``computed`` does."""
    if (
        not resources.cluster
        or not (technique.is_by_line and technique.is_costly)
        or any(map(is_stream, (files.input, files.output)))
    ):
        yield from _here(technique, iter(lines), tally, settings, with_spans)
        return
    make = partial(_masker, settings, files.word_counts, resources.threads, with_spans)
    parts = enumerate(blocks(lines, PART_LINES))
    for part in computed(parts, make, resources, uses_model=_uses_torch(settings)):
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


def _masker(settings: TechniqueSettings, word_counts: str | None, threads: int, with_spans: bool) -> Work:
    technique = settings.build(word_counts, threads)

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


def _uses_torch(settings: TechniqueSettings) -> bool:
    return "transformers" in _kinds(as_plain(settings))


def _kinds(plain: object) -> list[str]:
    """The kinds that plain settings, and those of their parts, name."""
    if isinstance(plain, list):
        return [kind for each in plain for kind in _kinds(each)]
    if not isinstance(plain, dict):
        return []
    own = [plain["kind"]] if isinstance(plain.get("kind"), str) else []
    return own + [kind for each in plain.values() for kind in _kinds(each)]
