"""Detection of the unit of a tool's span offsets, by the text at them.

Browsers count UTF-16 code units, so that an emoji is two. Some tools count ``\\n`` as two, or ``\\r\\n`` as one. A file
has one unit.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, chain

from tasks.corpora.words import word_spans
from tasks.errors import CorpusError
from tasks.review.formats import Annotated, Span


def _utf16(character: str) -> int:
    return 1 + (character > "\uffff")


_UNITS: dict[str, Callable[[str, str], int]] = {
    "characters": lambda character, near: 1,
    "UTF-16 code units": lambda character, near: _utf16(character),
    "characters with a line end as two": lambda character, near: 1 + (near[1] == "\n" and near[0] != "\r"),
    "characters with a CRLF as one": lambda character, near: near[1:] != "\r\n",
    "UTF-16 code units with a CRLF as one": lambda character, near: 0 if near[1:] == "\r\n" else _utf16(character),
}
"""Units of a character, given it and a string of three: the one before it, itself, and the one after it."""
Place = tuple[int, int] | None
"""First character of a span, and the one past the last; ``None`` if an offset is outside the text."""


def in_characters(records: Sequence[Annotated], name: str) -> tuple[list[list[Place]], str | None]:
    """The places of all spans, record by record, and the unit of the offsets, if it was not characters.

    Raises ``CorpusError`` with counts, and no text, if no unit is certain: in every unit a span is outside its text, or
    differs from the tool's text of the span.
    """
    spans = [(record.text, span) for record in records for span in record.spans]
    found = {
        unit: list(chain.from_iterable(_places(each, width) for each in records)) for unit, width in _UNITS.items()
    }
    misplaced = {
        unit: sum(not _covers(*each, place) for each, place in zip(spans, places, strict=True))
        for unit, places in found.items()
    }
    fitting = [unit for unit in found if not misplaced[unit]]
    if not fitting:
        raise CorpusError(
            f"{name!r}: {min(misplaced.values()):,} of {len(spans):,} spans do not cover their text, or end outside, "
            f"in {', '.join(_UNITS)}. Nothing was taken. Export the file again, with its text unchanged."
        )
    unit = max(
        fitting, key=lambda unit: sum(_on_words(text, at) for (text, _), at in zip(spans, found[unit], strict=True))
    )
    moved = [
        (text, span, place)
        for (text, span), before, place in zip(spans, found["characters"], found[unit], strict=True)
        if before != place
    ]
    if cut := sum(span.covered is None and not _on_words(text, place) for text, span, place in moved):
        raise CorpusError(
            f"{name!r}: {len(moved):,} of {len(spans):,} spans seem to be counted in {unit}, but {cut:,} of these do "
            "not cover whole words then. Nothing was taken. Export the file with the text of each span."
        )
    places = iter(found[unit])
    return [[next(places) for _ in record.spans] for record in records], unit if moved else None


def _places(record: Annotated, width: Callable[[str, str], int]) -> list[Place]:
    padded = f" {record.text} "
    units = list(accumulate((width(c, padded[i : i + 3]) for i, c in enumerate(record.text)), initial=0))

    def character(offset: int) -> int | None:
        place = bisect_left(units, offset)
        return place if place < len(units) and units[place] == offset else None

    pairs = [(character(span.start), character(span.end)) for span in record.spans]
    return [(start, end) if start is not None and end is not None and start < end else None for start, end in pairs]


def _covers(text: str, span: Span, place: Place) -> bool:
    if place is None:
        return False
    # Label Studio writes a line end inside a span as a backslash and an n.
    return span.covered is None or _plain(text[slice(*place)]) == _plain(span.covered.replace("\\n", "\n"))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _on_words(text: str, place: Place) -> bool:
    words = word_spans(text)
    return place is not None and place[0] in {start for start, _ in words} and place[1] in {end for _, end in words}
