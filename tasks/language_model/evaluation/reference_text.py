"""The text that a perplexity is measured on, as targets: what every kind of language model is asked to predict.

The targets of a sentence are its normalised words and then its end. They are the same for every model, whatever its own
units are, so their log-probabilities can be added up over the same groups of words: masked ones, frequent ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.corpora.sidecar import MaskedSpan, read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.language_model.evaluation.word_positions import placed_words

SENTENCE_END_RANK = -1
"""Rank of a sentence end, which is no word."""
UNRANKED = np.iinfo(np.int64).max
"""Rank of a word that the word counts do not have."""


@dataclass(frozen=True)
class ReferenceText:
    """All targets of a text, sentence after sentence; lines without a word are left out."""

    lines: np.ndarray
    """Line number of each sentence (S,), from 1 (int64)."""
    sentence: np.ndarray
    """Index of the sentence that each target belongs to (N,), int64."""
    words: Sequence[str]
    """The word of each target (N,); an empty string for a sentence end."""
    empty_lines: int
    """Lines left out because they hold no word."""
    masked: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By technique, whether it masks the target's word or a part of it (N,), bool."""

    @property
    def sentences(self) -> int:
        """Sentences with at least one word."""
        return len(self.lines)

    @property
    def word_count(self) -> int:
        """Targets that are words."""
        return len(self.words) - self.sentences

    @property
    def characters(self) -> int:
        """Characters of the normalised text: those of the words, and one separator behind each word."""
        return sum(map(len, self.words)) + self.word_count

    def is_end(self) -> np.ndarray:
        """Which targets are sentence ends (N,), bool."""
        return np.fromiter((not word for word in self.words), dtype=bool, count=len(self.words))

    def ranks(self, ranks: Mapping[str, int]) -> np.ndarray:
        """Rank of each target's word (N,), int64; ``SENTENCE_END_RANK`` and ``UNRANKED`` for what has none."""
        get = ranks.get
        return np.fromiter(
            (get(word, UNRANKED) if word else SENTENCE_END_RANK for word in self.words),
            dtype=np.int64,
            count=len(self.words),
        )


def read_reference_text(path: str | Path, sidecars: Mapping[str, str | Path] | None = None) -> ReferenceText:
    """The targets of a text file: ``reference_text_of`` its lines."""
    return reference_text_of(read_lines(path), path, sidecars)


def reference_text_of(
    text: Iterable[str], path: str | Path, sidecars: Mapping[str, str | Path] | None = None
) -> ReferenceText:
    """The targets of a text, and from the sidecar of each technique which of its words that technique masks.

    A word counts as masked where a masked span touches one of its characters: of ``Tom's``, masked as ``[MASK]'s``, the
    word ``tom's``; of ``Chicago-based`` the word ``chicago`` alone. ``path`` is what messages call the text. Raises
    ``CorpusError`` where the text holds no word and where a sidecar is not one of this text.
    """
    lines: list[int] = []
    sentence: list[int] = []
    words: list[str] = []
    sidecars = sidecars or {}
    masked: dict[str, list[bool]] = {technique: [] for technique in sidecars}
    spans_of = {technique: read_sidecar(file) for technique, file in sidecars.items()}
    number = empty = 0
    for number, line in enumerate(text, start=1):
        placed = placed_words(line)
        empty += not placed
        for technique, spans in spans_of.items():
            found = next(spans, None)
            _check_spans(path, sidecars[technique], number, line, found)
            if placed and found is not None:
                masked[technique] += [_touched(word.start, word.end, found) for word in placed]
                masked[technique].append(False)
        if placed:
            sentence += [len(lines)] * (len(placed) + 1)
            words += (*(word.word for word in placed), "")
            lines.append(number)
    for technique, spans in spans_of.items():
        if next(spans, None) is not None:
            raise _foreign(path, sidecars[technique], f"it goes on after the text's {number} lines")
    if not lines:
        state = "is empty" if number == 0 else f"holds no word in {number} lines"
        raise CorpusError(f"text {str(path)!r} {state}; it needs at least one sentence")
    return ReferenceText(
        lines=np.array(lines, dtype=np.int64),
        sentence=np.array(sentence, dtype=np.int64),
        words=words,
        empty_lines=empty,
        masked={technique: np.array(marks, dtype=bool) for technique, marks in masked.items()},
    )


def _touched(start: int, end: int, spans: Sequence[MaskedSpan]) -> bool:
    return any(span.start < end and start < span.end for span in spans)


def _check_spans(
    path: str | Path, sidecar: str | Path, number: int, line: str, spans: Sequence[MaskedSpan] | None
) -> None:
    if spans is None:
        raise _foreign(path, sidecar, f"it ends before the text's line {number}")
    for span in spans:
        if line[span.start : span.end] != span.original:
            raise _foreign(path, sidecar, f"the text's line {number} does not hold what it says was masked there")


def _foreign(path: str | Path, sidecar: str | Path, reason: str) -> CorpusError:
    return CorpusError(
        f"sidecar {str(sidecar)!r} does not belong to text {str(path)!r}: {reason}; mask this very text again with "
        "'palimpsest mask --sidecar'"
    )


def sidecars_in(folder: str | Path) -> dict[str, Path]:
    """The sidecars of a folder by the technique that their file names (``allow_list.jsonl``), or their folder
    (``allow_list/sidecar.jsonl``), in order of names.

    Raises ``CorpusError`` where there is none.
    """
    beside = {path.stem: path for path in Path(folder).glob("*.jsonl")}
    within = {path.parent.name: path for path in Path(folder).glob("*/sidecar.jsonl")}
    found = dict(sorted((beside | within).items()))
    if not found:
        raise CorpusError(
            f"folder {str(folder)!r} holds no sidecar; give a folder with TECHNIQUE.jsonl or "
            "TECHNIQUE/sidecar.jsonl for each technique, written by 'palimpsest mask --sidecar'"
        )
    return found
