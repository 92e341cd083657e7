"""The text that a perplexity is measured on, as targets: what every kind of language model is asked to predict.

The targets of a sentence are its normalised words and then its end. They are the same for every model, whatever its own
units are, so their log-probabilities can be added up over the same groups of words: masked ones, frequent ones.

Each word has its place in the raw line. Normalisation divides words that masking takes as one (``555-1234``) and joins
what masking divides (``Tom's``), and it can change the number of characters. What was masked is known by characters of
the raw line, so the two meet there.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.corpora.sidecar import MaskedSpan, read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.files.atomic_file import is_parquet
from tasks.language_model.normalisation import fold_characters, is_word

_STRETCH = re.compile(r"\s+|\S+")
_WORD = re.compile("[^ ]+")


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A normalised word and the characters of the raw line that it was made of."""

    word: str
    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""


def placed_words(line: str) -> list[PlacedWord]:
    """The words of ``normalise(line)``, the same in the same order, each with its place in ``line``."""
    folded, starts, ends = _folded(line)
    # As in ``normalise``, two apostrophes separate words; the blank is doubled so that places stay.
    spaced = folded.replace("''", "  ")
    words = []
    for match in _WORD.finditer(spaced):
        stretch = match.group()
        first = match.start() + len(stretch) - len(stretch.lstrip("'"))
        word = stretch.strip("'")
        if is_word(word):
            words.append(PlacedWord(word, starts[first], ends[first + len(word) - 1]))
    return words


def _folded(line: str) -> tuple[str, list[int], list[int]]:
    """The folded line, and for each of its characters the start and end of what it was made of in ``line``."""
    if line.isascii():
        places = list(range(len(line) + 1))
        return fold_characters(line), places[:-1], places[1:]
    text, starts, ends = [], [], []
    for stretch in _STRETCH.finditer(line):
        position = stretch.start()
        for raw, folded in _pieces(stretch.group()):
            text.append(folded)
            starts += [position] * len(folded)
            ends += [position + len(raw)] * len(folded)
            position += len(raw)
    return "".join(text), starts, ends


def _pieces(stretch: str) -> list[tuple[str, str]]:
    """A stretch in raw pieces and what each becomes: single characters as far as they fold by themselves.

    White space never changes what stands beside it, so a line folds stretch by stretch. Where the pieces together are
    not what the whole becomes, the whole is one piece.
    """
    if stretch.isascii():
        return [(character, fold_characters(character)) for character in stretch]
    whole = fold_characters(stretch)
    pieces: list[tuple[str, str]] = []
    for character in stretch:
        alone = fold_characters(character)
        if pieces:
            raw, folded = pieces[-1]
            together = fold_characters(raw + character)
            if together != folded + alone:
                pieces[-1] = (raw + character, together)
                continue
        pieces.append((character, alone))
    joined = "".join(folded for _, folded in pieces)
    if len(joined) == len(whole):
        # A sigma at the end of a word has a form of its own: one character either way.
        parts, place = [], 0
        for raw, folded in pieces:
            parts.append((raw, whole[place : place + len(folded)]))
            place += len(folded)
        if joined.replace("ς", "σ") == whole.replace("ς", "σ"):
            return parts
    return [(stretch, whole)]


_SENTENCE_END_RANK = -1
"""Rank of a sentence end, which is no word: below that of any word."""
UNRANKED = np.iinfo(np.int64).max
"""Rank of a word that the word counts do not have."""
FARTHEST = 5
"""Words behind a marked one that are measured apart, each distance alone."""
DISTANCES = ("1 word", *(f"{words} words" for words in range(2, FARTHEST + 1)), f"{FARTHEST + 1} words and more")
"""How far a word stands behind the last one that is marked, a switch point or a masked word."""


def distance_behind(marked: np.ndarray, first: np.ndarray | int = 0) -> np.ndarray:
    """How far each word is behind the last marked one (N,), but for those in front of ``first``, a place or one for
    each word: 0 of a marked one, -1 where there is none."""
    places = np.arange(len(marked))
    last = np.maximum.accumulate(np.where(marked, places, -1))
    return np.where(last < first, -1, places - last)


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

    def words_behind(self, marked: np.ndarray) -> dict[str, np.ndarray]:
        """Words by how far they stand behind the last ``marked`` one (N,) of their sentence: (N,) for each distance.

        A language model has read what stands in front of a word; of what comes behind it knows nothing.
        """
        first = np.searchsorted(self.sentence, np.arange(self.sentences))[self.sentence]
        behind = np.where(self.is_end(), -1, distance_behind(marked, first))
        each = [behind == words for words in range(1, FARTHEST + 1)]
        return dict(zip(DISTANCES, [*each, behind > FARTHEST], strict=True))

    def ranks(self, ranks: Mapping[str, int]) -> np.ndarray:
        """Rank of each target's word (N,), int64; -1 and ``UNRANKED`` for what has none."""
        get = ranks.get
        return np.fromiter(
            (get(word, UNRANKED) if word else _SENTENCE_END_RANK for word in self.words),
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
                masked[technique] += [is_touched(word.start, word.end, found) for word in placed]
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


def is_touched(start: int, end: int, spans: Sequence[MaskedSpan]) -> bool:
    """Whether a masked span touches one of these characters."""
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
    """A sidecar, or those of a folder, by the technique that their file names (``allow_list.jsonl``), or their folder
    (``allow_list/sidecar.jsonl``), in order of names.

    Raises ``CorpusError`` where there is none.
    """
    if not Path(folder).is_dir() or is_parquet(folder):
        file = Path(folder)
        return {file.resolve().parent.name if file.stem == "sidecar" else file.stem: file}
    beside = {path.stem: path for path in Path(folder).glob("*.jsonl")}
    within = {path.parent.name: path for path in Path(folder).glob("*/sidecar.jsonl")}
    found = dict(sorted((beside | within).items()))
    if not found:
        raise CorpusError(
            f"folder {str(folder)!r} holds no sidecar; give a folder with TECHNIQUE.jsonl or "
            "TECHNIQUE/sidecar.jsonl for each technique, written by 'palimpsest mask --sidecar'"
        )
    return found
