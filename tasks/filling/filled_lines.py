"""Filling of lines in parts: words, case, articles, and a check of each line.

A corpus is filled in parts of a fixed size from its start. So memory does not grow with the corpus. The content of a
part, and thus of a batch, does not depend on the worker.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat
from typing import TYPE_CHECKING, Protocol, TypeVar

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import CorpusError
from tasks.filling.agreement import agreed
from tasks.filling.masked_sentence import (
    Casing,
    Fill,
    Kind,
    MaskedSentence,
    check_unchanged,
    read_masked_line,
    spans_of_slots,
    with_spans,
)
from tasks.filling.place_languages import PlaceLanguages
from tasks.parts import PART_LINES, nothing

if TYPE_CHECKING:
    import numpy as np


class Filler(Protocol):
    """Writes words into slots: a model with a method, or a control without a model.

    It may also have ``counts``, a ``Counter`` by the names of the sums in the report.
    """

    @property
    def forward_seconds(self) -> float | None:
        """Seconds in a model so far; ``None`` without a model."""
        ...

    @property
    def candidate_count(self) -> int:
        """Number of words to choose from."""
        ...

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; calls ``advance`` with the number of slots just filled."""
        ...


class Kinds(Protocol):
    """Languages of places, or classes and forms of masked words, which fills follow."""

    def with_kinds(self, lines: Sequence[str], sentences: Sequence[MaskedSentence]) -> list[MaskedSentence]:
        """The sentences of masked lines, with the kind of each slot."""
        ...

    def weights(self, words: Sequence[str], kind: Kind) -> "np.ndarray | None":
        """``(W,)`` shares of the words' occurrences as words of a kind, 0 for a word that may not be written; ``None``
        for no restriction."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """Some consecutive lines of a masked corpus."""

    first_line: int
    """Number of the first line, from 1; draws depend on line numbers."""
    lines: list[str]
    spans: list[list[MaskedSpan]] | None
    """Masked spans of each line from the sidecar (private), or ``None`` without a sidecar."""
    documents: list[str] | None = None
    """Name of each line's document, or ``None`` if unknown."""
    lines_before: int = 0
    """Number of lines in earlier copies of the corpus."""


@dataclass(frozen=True, slots=True)
class FilledPart:
    """The lines of a part with their fills."""

    sentences: list[MaskedSentence]
    fills: list[list[Fill]]
    words: list[list[str]]
    """The fills in their final case, with agreed articles."""
    lines: list[str]
    """Filled lines, unescaped."""
    counts: dict[str, int]
    """Counts of the filler for this part."""
    candidate_words: int
    """Number of words that the filler chooses from."""
    forward_seconds: float | None
    """Seconds in the model; ``None`` without a model."""
    lines_before: int
    """Number of lines in earlier copies of the corpus."""


Item = TypeVar("Item")


def read_parts(
    lines: Iterable[str], spans: Iterable[list[MaskedSpan]] | None = None, documents: Iterable[str] | None = None
) -> Iterator[Part]:
    """Divide a masked corpus. Raises ``CorpusError`` if the sidecar or the documents have another number of lines."""
    remaining, count = iter(lines), 0
    records = None if spans is None else iter(spans)
    names = None if documents is None else iter(documents)

    def taken(following: Iterator[Item] | None, what: str) -> list[Item] | None:
        if following is None:
            return None
        items = list(islice(following, len(part)))
        if len(items) < len(part):
            raise CorpusError(f"the {what} ends before line {count + len(items) + 1} of the masked text")
        return items

    while part := list(islice(remaining, PART_LINES)):
        yield Part(count + 1, part, taken(records, "sidecar"), taken(names, "documents file"))
        count += len(part)
    for following, what in ((records, "sidecar"), (names, "documents file")):
        if following is not None and next(following, None) is not None:
            raise CorpusError(f"the {what} has more lines than the {count} of the masked text")


def lines_with_spans(
    lines: Iterable[str], spans: Iterable[list[MaskedSpan]]
) -> Iterator[tuple[str, tuple[MaskedSpan, ...]]]:
    """Masked lines with their spans. Raises ``CorpusError`` if the sidecar is of another masked text."""
    for part in read_parts(lines, spans):
        for number, (line, record) in enumerate(zip(part.lines, part.spans or (), strict=True), part.first_line):
            yield line, with_spans(read_masked_line(line, number, merge_markers=False), record).spans


def fill_part(
    part: Part,
    filler: Filler,
    casing: Casing,
    *,
    merge_markers: bool,
    kinds: Kinds | None = None,
    advance: Callable[[int], object] = nothing,
) -> FilledPart:
    """Fill a part; ``advance`` is called with the number of slots just filled.

    ``kinds``: languages or classes, if fills follow them. Raises ``CorpusError`` if the sidecar is of another text, and
    ``RuntimeError`` if the unmasked text of a line would change (except articles, see ``agreement``).
    """
    # A difference of counters would drop counts of 0, which the report needs.
    before, seconds = dict(getattr(filler, "counts", {})), filler.forward_seconds or 0.0
    sentences = [
        read_masked_line(line, number, merge_markers=merge_markers, document=document)
        for number, (line, document) in enumerate(
            zip(part.lines, part.documents or repeat(None), strict=False), part.first_line
        )
    ]
    if part.spans is not None:
        sentences = [with_spans(sentence, spans) for sentence, spans in zip(sentences, part.spans, strict=True)]
    if kinds is not None:
        sentences = kinds.with_kinds(part.lines, sentences)
    fills = filler.fill(sentences, advance)
    words, lines = [], []
    for line, sentence, its_fills in zip(part.lines, sentences, fills, strict=True):
        texts, its_words = agreed(sentence, casing.write(sentence.texts, [fill.word for fill in its_fills]))
        filled = replace(sentence, texts=tuple(texts)).filled(its_words)
        check_unchanged(line, filled, sentence, its_words)
        words.append(its_words)
        lines.append(filled)
    counts = {name: count - before.get(name, 0) for name, count in dict(getattr(filler, "counts", {})).items()}
    if isinstance(kinds, PlaceLanguages):
        private = None if part.spans is None else list(map(_private_line, sentences))
        counts |= kinds.counts(sentences, lines, private)
    forward = None if filler.forward_seconds is None else filler.forward_seconds - seconds
    return FilledPart(sentences, fills, words, lines, counts, filler.candidate_count, forward, part.lines_before)


def _private_line(sentence: MaskedSentence) -> str:
    """The line before masking, except for the white space between merged markers."""
    return sentence.filled([" ".join(span.original for span in spans) for spans in spans_of_slots(sentence)])
