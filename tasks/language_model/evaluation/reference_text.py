"""Reference texts: the targets of a text, which language models of every kind predict for a perplexity.

The targets of a sentence are its normalised words and then its end. They do not depend on a model's own units. So their
log-probabilities can be summed over the same groups of words, such as masked or frequent words.

Each word has its span in the raw line. Normalisation splits words that masking takes as one (``555-1234``), joins words
that masking splits (``Tom's``), and can change the number of characters. Masked spans are in characters of the raw
line, so both are matched there.
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
    """A normalised word and its span in the raw line."""

    word: str
    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""


def placed_words(line: str) -> list[PlacedWord]:
    """The words of ``normalise(line)``, in order, each with its span in ``line``."""
    folded, starts, ends = _folded(line)
    # As in ``normalise``, two apostrophes separate words; two blanks replace them, so that offsets stay.
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
    """The folded line, and for each of its characters the start and end of its source in ``line``."""
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
    """A stretch as raw pieces and the folded form of each: single characters where they fold independently.

    White space does not change how its neighbours fold, so a line folds stretch by stretch. The whole stretch is one
    piece where the folded pieces do not add up to the folded stretch.
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
        # A sigma at the end of a word has its own form, also of one character.
        parts, place = [], 0
        for raw, folded in pieces:
            parts.append((raw, whole[place : place + len(folded)]))
            place += len(folded)
        if joined.replace("ς", "σ") == whole.replace("ς", "σ"):
            return parts
    return [(stretch, whole)]


_SENTENCE_END_RANK = -1
"""Rank of a sentence end, below the rank of every word."""
UNRANKED = np.iinfo(np.int64).max
"""Rank of a word that is not in the word counts."""
FARTHEST = 5
"""Largest distance after a marked word that is measured separately, in words."""
DISTANCES = ("1 word", *(f"{words} words" for words in range(2, FARTHEST + 1)), f"{FARTHEST + 1} words and more")
"""Names of the distances to the last marked word, which is a switch point or a masked word."""


def distance_behind(marked: np.ndarray, first: np.ndarray | int = 0) -> np.ndarray:
    """How many words each word is after the last marked one (N,): 0 for a marked word, -1 where there is none.
    Marked words before ``first``, an index or one for each word, are ignored."""
    places = np.arange(len(marked))
    last = np.maximum.accumulate(np.where(marked, places, -1))
    return np.where(last < first, -1, places - last)


@dataclass(frozen=True)
class ReferenceText:
    """All targets of a text, sentence after sentence; lines without a word are left out."""

    lines: np.ndarray
    """Line number of each sentence (S,), from 1 (int64)."""
    sentence: np.ndarray
    """Sentence index of each target (N,), int64."""
    words: Sequence[str]
    """The word of each target (N,); an empty string for a sentence end."""
    empty_lines: int
    """Number of lines left out because they hold no word."""
    masked: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By technique, whether it masks the target's word or part of it (N,), bool."""

    @property
    def sentences(self) -> int:
        """Number of sentences with at least one word."""
        return len(self.lines)

    @property
    def word_count(self) -> int:
        """Number of targets that are words."""
        return len(self.words) - self.sentences

    @property
    def characters(self) -> int:
        """Number of characters of the normalised text: its words, and one separator after each word."""
        return sum(map(len, self.words)) + self.word_count

    def is_end(self) -> np.ndarray:
        """Whether each target is a sentence end (N,), bool."""
        return np.fromiter((not word for word in self.words), dtype=bool, count=len(self.words))

    def words_behind(self, marked: np.ndarray) -> dict[str, np.ndarray]:
        """By distance, the words that far after the last ``marked`` one (N,) of their sentence: (N,) bool for each.

        Only words after a marked one count, since a language model reads from left to right.
        """
        first = np.searchsorted(self.sentence, np.arange(self.sentences))[self.sentence]
        distance = np.where(self.is_end(), -1, distance_behind(marked, first))
        each = [distance == words for words in range(1, FARTHEST + 1)]
        return dict(zip(DISTANCES, [*each, distance > FARTHEST], strict=True))

    def ranks(self, ranks: Mapping[str, int]) -> np.ndarray:
        """Rank of each target's word (N,), int64; -1 for a sentence end, ``UNRANKED`` for a word without a rank."""
        get = ranks.get
        return np.fromiter(
            (get(word, UNRANKED) if word else _SENTENCE_END_RANK for word in self.words),
            dtype=np.int64,
            count=len(self.words),
        )


def read_reference_text(path: str | Path, sidecars: Mapping[str, str | Path] | None = None) -> ReferenceText:
    """Read the targets of a text file, as ``reference_text_of`` its lines."""
    return reference_text_of(read_lines(path), path, sidecars)


def reference_text_of(
    text: Iterable[str], path: str | Path, sidecars: Mapping[str, str | Path] | None = None
) -> ReferenceText:
    """The targets of a text; the sidecar of each technique says which words it masks.

    A word counts as masked where a masked span overlaps one of its characters. In ``Tom's``, masked as ``[MASK]'s``,
    that is ``tom's``; in ``Chicago-based`` it is ``chicago`` alone. ``path`` names the text in messages. Raises
    ``CorpusError`` where the text has no word, or a sidecar does not belong to it.
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
    """Whether a masked span overlaps one of these characters."""
    return any(span.start < end and start < span.end for span in spans)


def _check_spans(
    path: str | Path, sidecar: str | Path, number: int, line: str, spans: Sequence[MaskedSpan] | None
) -> None:
    if spans is None:
        raise _foreign(path, sidecar, f"it ends before the text's line {number}")
    for span in spans:
        if line[span.start : span.end] != span.original:
            raise _foreign(path, sidecar, f"the text's line {number} does not hold the words masked there")


def _foreign(path: str | Path, sidecar: str | Path, reason: str) -> CorpusError:
    return CorpusError(
        f"sidecar {str(sidecar)!r} does not belong to text {str(path)!r}: {reason}. Mask this text again with "
        "'palimpsest mask --sidecar'. Delete the folder of a technique that is not compared any more"
    )


def sidecars_in(folder: str | Path) -> dict[str, Path]:
    """The sidecars of a file or folder, by technique, in order of names. The file name (``allow_list.jsonl``) or
    its folder (``allow_list/sidecar.jsonl``) names the technique.

    Raises ``CorpusError`` where there is none.
    """
    if not Path(folder).is_dir() or is_parquet(folder):
        file = Path(folder)
        return {file.resolve().parent.name if file.stem == "sidecar" else file.stem: file}
    flat = {path.stem: path for path in Path(folder).glob("*.jsonl")}
    within = {path.parent.name: path for path in Path(folder).glob("*/sidecar.jsonl")}
    found = dict(sorted((flat | within).items()))
    if not found:
        raise CorpusError(
            f"folder {str(folder)!r} holds no sidecar; give a folder with TECHNIQUE.jsonl or "
            "TECHNIQUE/sidecar.jsonl for each technique, written by 'palimpsest mask --sidecar'"
        )
    return found
