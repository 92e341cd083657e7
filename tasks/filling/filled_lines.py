"""Filling of lines in parts: words, case, articles, and a check of each line.

A corpus is filled in parts of a fixed size from its start. So memory does not grow with the corpus. The content of a
part, and thus of a batch, does not depend on the worker.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat
from typing import Protocol, TypeVar

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import CorpusError
from tasks.filling.agreement import agreed
from tasks.filling.masked_sentence import (
    Casing,
    Fill,
    MaskedSentence,
    check_unchanged,
    read_masked_line,
    spans_of_slots,
    with_spans,
)
from tasks.filling.place_languages import PlaceLanguages
from tasks.parts import PART_LINES, nothing


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


Item = TypeVar("Item")


def read_parts(
    lines: Iterable[str],
    spans: Iterable[list[MaskedSpan]] | None = None,
    documents: Iterable[str] | None = None,
) -> Iterator[Part]:
    """Divide a masked corpus. Raises ``CorpusError`` if the sidecar or the documents have another number of lines."""
    remaining = iter(lines)
    records = iter(spans) if spans is not None else None
    names = iter(documents) if documents is not None else None
    count = 0
    while part := list(islice(remaining, PART_LINES)):
        yield Part(
            count + 1,
            part,
            _aligned(part, count, records, "sidecar"),
            _aligned(part, count, names, "documents file"),
        )
        count += len(part)
    for following, what in ((records, "sidecar"), (names, "documents file")):
        if following is not None and next(following, None) is not None:
            raise CorpusError(f"the {what} has more lines than the {count} of the masked text")


def _aligned(part: Sequence[str], before: int, following: Iterator[Item] | None, what: str) -> list[Item] | None:
    """The items of ``following`` for the lines of a part, after ``before`` lines of other parts."""
    if following is None:
        return None
    items = list(islice(following, len(part)))
    if len(items) < len(part):
        raise CorpusError(f"the {what} ends before line {before + len(items) + 1} of the masked text")
    return items


def lines_with_spans(
    lines: Iterable[str], spans: Iterable[list[MaskedSpan]]
) -> Iterator[tuple[str, tuple[MaskedSpan, ...]]]:
    """Masked lines with their spans. Raises ``CorpusError`` if the sidecar is of another masked text."""
    for part in read_parts(lines, spans):
        for number, (line, record) in enumerate(zip(part.lines, part.spans or (), strict=True), part.first_line):
            yield line, with_spans(read_masked_line(line, number, merge_markers=False), record).spans


@dataclass
class PartFiller:
    """A filler with its casing and languages; every device has one."""

    filler: Filler
    casing: Casing
    merge_markers: bool
    languages: PlaceLanguages | None = None
    """Languages of places, if fills follow them."""

    def fill(self, part: Part, advance: Callable[[int], object] = nothing) -> FilledPart:
        """Fill a part; ``advance`` is called with the number of slots just filled.

        Raises ``CorpusError`` if the sidecar is of another text, and ``RuntimeError`` if the unmasked text of a line
        would change (except articles, see ``agreement``).
        """
        before, seconds = self._counts(), self.filler.forward_seconds or 0.0
        sentences = self._sentences(part)
        fills = self.filler.fill(sentences, advance)
        written = list(map(self._written, part.lines, sentences, fills))
        words, lines = [each for each, _ in written], [line for _, line in written]
        # A difference of counters would drop counts of 0, which the report needs.
        counts = {name: count - before.get(name, 0) for name, count in self._counts().items()}
        if self.languages is not None:
            private = None if part.spans is None else list(map(_private_line, sentences))
            counts |= self.languages.counts(sentences, lines, private)
        total = self.filler.forward_seconds
        forward = None if total is None else total - seconds
        return FilledPart(sentences, fills, words, lines, counts, self.filler.candidate_count, forward)

    def _counts(self) -> dict[str, int]:
        return dict(getattr(self.filler, "counts", {}))

    def _written(self, line: str, sentence: MaskedSentence, fills: Sequence[Fill]) -> tuple[list[str], str]:
        words = self.casing.write(sentence.texts, [fill.word for fill in fills])
        texts, words = agreed(sentence, words)
        filled = replace(sentence, texts=tuple(texts)).filled(words)
        check_unchanged(line, filled, sentence, words)
        return words, filled

    def _sentences(self, part: Part) -> list[MaskedSentence]:
        lines = zip(part.lines, part.documents or repeat(None), strict=False)
        sentences = [
            read_masked_line(line, number, merge_markers=self.merge_markers, document=document)
            for number, (line, document) in enumerate(lines, part.first_line)
        ]
        if self.languages is not None:
            sentences = self.languages.with_languages(part.lines, sentences)
        if part.spans is None:
            return sentences
        return [with_spans(sentence, spans) for sentence, spans in zip(sentences, part.spans, strict=True)]


def _private_line(sentence: MaskedSentence) -> str:
    """The line before masking, except for the white space between merged markers."""
    words = [" ".join(span.original for span in spans) for spans in spans_of_slots(sentence)]
    return "".join(text + word for text, word in zip(sentence.texts, [*words, ""], strict=True))
