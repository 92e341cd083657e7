"""From masked lines to filled lines: streaming, in the order of the lines, each one checked.

Lines are taken in shards of a fixed size, counted from the start of the corpus: memory does not grow with the corpus,
and what stands in a shard, and so in a batch, does not depend on how the work is divided.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.filling.casing import Casing
from tasks.filling.kept_words import KeptWords
from tasks.filling.left_to_right import Fill
from tasks.filling.masked_sentence import MaskedSentence, check_unchanged, read_masked_line
from tasks.filling.restoration import Restoration

SHARD_LINES = 4096


class Filler(Protocol):
    """Whatever writes words into slots: a model with a method and an order, or a control without a model."""

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


@dataclass
class FillingTally:
    """What was counted while a corpus was filled."""

    kept: KeptWords
    lines: int = 0
    markers: int = 0
    fills: int = 0
    fallbacks: int = 0
    off_list: int = 0
    words: set[str] = field(default_factory=set)
    """Different fills, folded."""

    def add(self, sentence: MaskedSentence, fills: Sequence[Fill]) -> None:
        """Count one line."""
        self.lines += 1
        self.markers += sentence.slots[-1].last_marker + 1 if sentence.slots else 0
        self.fills += len(fills)
        for fill in fills:
            self.fallbacks += fill.fallback
            self.off_list += not self.kept.holds(fill.word)
            self.words.add(fold(fill.word))

    @property
    def off_list_share(self) -> float | None:
        """Share of fills that are not on the list of kept words; ``None`` without a list or fills."""
        return self.off_list / self.fills if self.fills and self.kept else None


def fill_lines(
    lines: Iterable[str],
    filler: Filler,
    casing: Casing,
    tally: FillingTally,
    *,
    merge_markers: bool,
    spans: Iterable[list[MaskedSpan]] | None = None,
    restoration: Restoration | None = None,
    advance: Callable[[int], object] = lambda slots: None,
) -> Iterator[str]:
    """Yield one filled line, unescaped, per masked line.

    ``spans`` (the sidecar) and ``restoration`` come together. Raises ``CorpusError`` where the sidecar has another
    number of lines, and ``RuntimeError`` where a line's unmasked text would have changed.
    """
    remaining = enumerate(lines, start=1)
    records = iter(spans) if spans is not None else None
    while shard := list(islice(remaining, SHARD_LINES)):
        sentences = [read_masked_line(line, number, merge_markers=merge_markers) for number, line in shard]
        for (number, line), sentence, fills in zip(shard, sentences, filler.fill(sentences, advance), strict=True):
            words = casing.write(sentence.texts, [fill.word for fill in fills])
            filled = sentence.filled(words)
            check_unchanged(line, filled, sentence, words)
            tally.add(sentence, fills)
            if records is not None and restoration is not None:
                record = next(records, None)
                if record is None:
                    raise CorpusError(f"the sidecar ends before line {number} of the masked text")
                restoration.add(sentence, record, words)
            yield filled
    if records is not None and next(records, None) is not None:
        raise CorpusError(f"the sidecar has more lines than the {tally.lines} of the masked text")
