"""From masked lines to filled lines: in shards, in the order of the lines, articles agreed, each line checked.

Lines are taken in shards of a fixed size, counted from the start of the corpus: memory does not grow with the corpus,
and what is in a shard, and so in a batch, does not depend on who fills it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.filling.agreement import agreed
from tasks.filling.choice import spans_of_slots, with_spans
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence, check_unchanged, read_masked_line
from tasks.filling.place_languages import PlaceLanguages
from tasks.filling.restoration import GenericWords, Restoration
from tasks.parts import PART_LINES


class Filler(Protocol):
    """Whatever writes words into slots: a model with a method and an order, or a control without a model.

    It may also have ``counts``, a ``Counter`` of what it did, by the names under which the report gives the sums.
    """

    @property
    def forward_seconds(self) -> float | None:
        """Seconds inside a model so far; ``None`` where there is no model."""
        ...

    @property
    def candidate_count(self) -> int:
        """How many words it chooses from."""
        ...

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; calls ``advance`` with the number of slots just filled."""
        ...


@runtime_checkable
class Rewriter(Filler, Protocol):
    """Whatever writes private lines anew: it has no fills for slots."""

    def rewrite(self, lines: Sequence[str], numbers: Sequence[int], advance: Callable[[int], object]) -> list[str]:
        """What stands in the place of each line, by its number in the corpus; calls ``advance`` with the number of
        lines just written."""
        ...


class BuiltFiller(NamedTuple):
    """What a method builds."""

    filler: Filler
    casing: Casing
    """How the words are written."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some neighbouring lines of a masked corpus."""

    index: int
    """From 0."""
    first_line: int
    """Number of its first line in the corpus, from 1."""
    lines: list[str]
    records: list[list[MaskedSpan]] | None
    """Their records of the sidecar (private), or ``None`` where no sidecar is read."""
    documents: list[str] | None = None
    """The name of each line's document, or ``None`` where these are not known."""
    lines_before: int = 0
    """Lines of earlier copies of the corpus, which ``first_line`` counts too."""


Item = TypeVar("Item")


def read_shards(
    lines: Iterable[str],
    records: Iterable[list[MaskedSpan]] | None = None,
    documents: Iterable[str] | None = None,
) -> Iterator[Shard]:
    """Divide a masked corpus; ``CorpusError`` where the sidecar or the names of documents have another number of
    lines."""
    remaining = iter(lines)
    spans = iter(records) if records is not None else None
    names = iter(documents) if documents is not None else None
    index = count = 0
    while part := list(islice(remaining, PART_LINES)):
        yield Shard(
            index,
            count + 1,
            part,
            _beside(part, count, spans, "sidecar"),
            _beside(part, count, names, "documents file"),
        )
        index, count = index + 1, count + len(part)
    for following, what in ((spans, "sidecar"), (names, "documents file")):
        if following is not None and next(following, None) is not None:
            raise CorpusError(f"the {what} has more lines than the {count} of the masked text")


def lines_with_spans(
    lines: Iterable[str], records: Iterable[list[MaskedSpan]]
) -> Iterator[tuple[str, tuple[MaskedSpan, ...]]]:
    """Masked lines, each with its record; ``CorpusError`` where the sidecar is of another masked text."""
    for shard in read_shards(lines, records):
        for number, (line, spans) in enumerate(zip(shard.lines, shard.records or (), strict=True), shard.first_line):
            yield line, with_spans(read_masked_line(line, number, merge_markers=False), spans).spans


def read_copies(copies: int, read: Callable[[], Iterable[Shard]]) -> Iterator[Shard]:
    """The shards of a corpus that is filled several times, copy after copy; ``read`` reads it from its start.

    Shards and lines are numbered on from copy to copy: chance belongs to the number of a line, so each copy has its
    own, and the first one that of a single fill.
    """
    shards = lines = 0
    for _ in range(copies):
        first_shard, lines_before = shards, lines
        for shard in read():
            yield replace(
                shard,
                index=first_shard + shard.index,
                first_line=lines_before + shard.first_line,
                lines_before=lines_before,
            )
            shards, lines = shards + 1, lines + len(shard.lines)


def _beside(part: Sequence[str], before: int, following: Iterator[Item] | None, what: str) -> list[Item] | None:
    """What belongs to the lines of a part, of which ``before`` lines stand before it."""
    if following is None:
        return None
    items = list(islice(following, len(part)))
    if len(items) < len(part):
        raise CorpusError(f"the {what} ends before line {before + len(items) + 1} of the masked text")
    return items


_SUMS = ("lines", "markers", "fills", "fallbacks", "off_list")


@dataclass
class FillingTally:
    """What was counted while a corpus, or a shard of it, was filled."""

    kept: KeptWords
    restoration: Restoration | None = None
    """``None`` where no sidecar is read."""
    lines: int = 0
    markers: int = 0
    fills: int = 0
    fallbacks: int = 0
    off_list: int = 0
    words: set[str] = field(default_factory=set)
    """Different fills, folded."""
    counts: Counter[str] = field(default_factory=Counter)
    """What the filler counted."""
    candidate_words: int | None = None
    """How many words the filler chooses from."""

    def add(self, sentence: MaskedSentence, fills: Sequence[Fill]) -> None:
        """Count one line."""
        self.lines += 1
        self.markers += sentence.slots[-1].last_marker + 1 if sentence.slots else 0
        self.fills += len(fills)
        # A line that was written anew has slots and no fills.
        for slot, fill in zip(sentence.slots, fills, strict=False):
            self.fallbacks += fill.fallback
            self.off_list += not self.kept.holds(fill.word, slot.language)
            self.words.add(fold(fill.word))

    @property
    def off_list_share(self) -> float | None:
        """Share of fills that are not on the list of kept words; ``None`` without a list or fills."""
        return self.off_list / self.fills if self.fills and self.kept else None

    def as_plain(self) -> dict[str, Any]:
        """The counts as plain values; ``add_plain`` reads them back."""
        return {
            **{name: getattr(self, name) for name in _SUMS},
            "words": sorted(self.words),
            "counts": dict(self.counts),
            "candidate_words": self.candidate_words,
            "restoration": self.restoration.as_plain() if self.restoration else None,
        }

    def add_plain(self, plain: Mapping[str, Any]) -> None:
        """Count what was counted of other lines, from their ``as_plain``."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + plain[name])
        self.words.update(plain["words"])
        for name, count in plain["counts"].items():
            self.counts[name] += count
        self.candidate_words = plain["candidate_words"]
        if self.restoration is not None:
            self.restoration.add_plain(plain["restoration"])


@dataclass(frozen=True, slots=True)
class FilledShard:
    """The result of one shard."""

    index: int
    lines: list[str]
    """Unescaped."""
    tally: dict[str, Any]
    """``FillingTally.as_plain`` of its lines."""
    forward_seconds: float | None = None
    """Seconds inside the model; ``None`` without one."""


@dataclass
class CorpusFiller:
    """A filler with all that belongs to filling a corpus with it; every device has one."""

    filler: Filler
    casing: Casing
    kept: KeptWords
    merge_markers: bool
    generic: GenericWords | None = None
    """For the restoration by frequency."""
    languages: PlaceLanguages | None = None
    """Of the places, where fills keep them."""
    copies: int = 1
    """How often the corpus is filled."""

    def fill_shard(self, shard: Shard, advance: Callable[[int], object] = lambda slots: None) -> FilledShard:
        """Fill a shard; ``advance`` is called with the number of slots just filled.

        Raises ``CorpusError`` where a record of the sidecar is of another text, and ``RuntimeError`` where a line's
        unmasked text would have changed (but for articles, see ``agreement``).
        """
        tally = FillingTally(self.kept, Restoration(self.generic, self.copies) if shard.records is not None else None)
        counts, seconds = self._counts(), self.filler.forward_seconds or 0.0
        sentences = self._sentences(shard)
        if isinstance(self.filler, Rewriter):
            numbers = [sentence.number for sentence in sentences]
            lines = self.filler.rewrite(list(map(_private_line, sentences)), numbers, advance)
            for sentence in sentences:
                tally.add(sentence, [])
        else:
            fills = self.filler.fill(sentences, advance)
            lines = [self._filled(shard, *each, tally) for each in zip(shard.lines, sentences, fills, strict=True)]
        # Not a difference of counters, which drops what did not change: a count of 0 is worth saying.
        tally.counts = Counter({name: count - counts.get(name, 0) for name, count in self._counts().items()})
        if self.languages is not None:
            private = None if shard.records is None else list(map(_private_line, sentences))
            tally.counts.update(self.languages.counts(sentences, lines, private))
        tally.candidate_words = self.filler.candidate_count
        total = self.filler.forward_seconds
        return FilledShard(shard.index, lines, tally.as_plain(), None if total is None else total - seconds)

    def _filled(
        self, shard: Shard, line: str, sentence: MaskedSentence, fills: Sequence[Fill], tally: FillingTally
    ) -> str:
        words = self.casing.write(sentence.texts, [fill.word for fill in fills])
        texts, words = agreed(sentence, words)
        filled = replace(sentence, texts=tuple(texts)).filled(words)
        check_unchanged(line, filled, sentence, words)
        tally.add(sentence, fills)
        if tally.restoration is not None:
            tally.restoration.add(sentence, words, shard.lines_before)
        return filled

    def _sentences(self, shard: Shard) -> list[MaskedSentence]:
        lines = zip(shard.lines, shard.documents or repeat(None), strict=False)
        sentences = [
            read_masked_line(line, number, merge_markers=self.merge_markers, document=document)
            for number, (line, document) in enumerate(lines, shard.first_line)
        ]
        if self.languages is not None:
            sentences = self.languages.told(shard.lines, sentences)
        if shard.records is None:
            return sentences
        return [with_spans(sentence, spans) for sentence, spans in zip(sentences, shard.records, strict=True)]

    def _counts(self) -> dict[str, int]:
        return dict(getattr(self.filler, "counts", {}))


def _private_line(sentence: MaskedSentence) -> str:
    """The line before it was masked, but for the white space between merged markers."""
    words = [" ".join(span.original for span in spans) for spans in spans_of_slots(sentence)]
    return "".join(text + word for text, word in zip(sentence.texts, [*words, ""], strict=True))
