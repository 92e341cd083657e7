"""Word frequencies of generic text and of the private domain, and the list of never-masked words.

``domain_frequencies`` estimates the frequencies of the private domain without the masked words. Each generic sentence
``s`` gets a weight by its words ``v`` that are unmasked in the masked text: naive Bayes over one sentence (as in Moore
and Lewis 2010, "Intelligent selection of language model training data"),

    score(s) = sum over v of log(p_masked(v) / p_generic(v)) / sqrt(number of v),    clipped to -6 ... 6
    weight(s) = exp(strength * score(s)),    scaled so that the total count of unseen words does not change

with p_masked smoothed by 1,000 words of generic text. Each word's frequency is multiplied by the ratio of its weighted
to its plain occurrences, both plus K = 20. Half of the unmasked words weights the sentences, and the strength maximises
the likelihood of the other half in the masked text. Each half has both roles in turn.
"""

import zlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpora.word_counts import read_word_counts
from tasks.corpora.word_list import read_word_list
from tasks.corpora.words import fold, folded_words
from tasks.errors import CorpusError
from tasks.filling.fill_words import is_latin
from tasks.filling.masked_lm.candidate_words import is_letter, is_word
from tasks.filling.masked_sentence import Kind, read_masked_line, usual_forms

if TYPE_CHECKING:
    from tasks.filling.filled_lines import Kinds

_NEARLY_ALL = 0.9


class AllowedWords:
    """Folded words that a technique never masks; empty for a technique without a list."""

    def __init__(self, words: Iterable[str] = (), by_language: Mapping[str, Collection[str]] | None = None) -> None:
        """``by_language``: for each language, words that are never masked as words of it."""
        self._words, self._by_language = frozenset(words), by_language or {}

    @classmethod
    def read(cls, path: str | Path | None) -> "AllowedWords":
        """Read ``allowed_words.txt``: a word a line, or ``word<TAB>language`` for a word that is never masked in that
        language alone. ``None`` is no list. Raises ``CorpusError`` if the file is no word list."""
        if path is None:
            return cls()
        words = read_word_list(path, empty=True, of_languages=True)
        return cls(words.words, words.by_language)

    def __bool__(self) -> bool:
        return bool(self._words or self._by_language)

    def __len__(self) -> int:
        return len(self._words)

    def holds(self, word: str, kind: Kind = None) -> bool:
        """Whether the folded word is on the list; as a word of a language, if the ``kind`` is one."""
        folded = fold(word)
        return folded in self._words or (isinstance(kind, str) and folded in self._by_language.get(kind, ()))

    def off_list(self, words: Iterable[str], kind: Kind = None) -> np.ndarray:
        """``(W,)`` booleans: which words are not on the list; all of them without a list."""
        return np.array([not self.holds(word, kind) for word in words], dtype=bool)


@dataclass(frozen=True)
class WordFrequencies:
    """Cased words and their counts. Entries that may not replace a marker are left out, and single letters by
    default."""

    words: tuple[str, ...]
    counts: np.ndarray
    """``(W,)`` int64."""
    groups: np.ndarray | None = None
    """``(W,)`` int64: groups of words whose total count among the masked words is known (``counted_frequencies``); -1
    for unknown, and ``None`` if all are."""

    @classmethod
    def of(cls, counts: Iterable[tuple[str, int]], *, letters: bool = False) -> "WordFrequencies":
        """The words of a word list; with ``letters`` single letters too. A list that is nearly all in the Latin script
        loses its words of other scripts, which readers of such a text may not know."""
        entries = [
            (word, count) for word, count in counts if count > 0 and (is_word(word) or (letters and is_letter(word)))
        ]
        latin = [word.isascii() or is_latin(word) for word, _ in entries]
        if sum(latin) >= _NEARLY_ALL * len(entries):
            entries = [entry for entry, keep in zip(entries, latin, strict=True) if keep]
        numbers = np.array([count for _, count in entries], dtype=np.int64)
        return cls(tuple(word for word, _ in entries), numbers)

    @classmethod
    def read(cls, path: str | Path, *, letters: bool = False) -> "WordFrequencies":
        """Read ``word_counts.tsv``. Raises ``CorpusError`` if it is missing, damaged or has no word."""
        frequencies = cls.of(read_word_counts(path), letters=letters)
        if not frequencies.words:
            raise CorpusError(
                f"word counts {str(path)!r} hold no word; make them from a text with 'palimpsest count-words'"
            )
        return frequencies

    @classmethod
    def published(cls, languages: Sequence[str] = (), *, letters: bool = False) -> "WordFrequencies":
        """Frequencies of the published lists of the languages, or of English; for a user without counts."""
        from tasks.corpora.sources.published_frequencies import published_counts

        counts: Counter[str] = Counter()
        for language in languages or ["en"]:
            counts.update(dict(published_counts(language)))
        return cls.of(counts.items(), letters=letters)

    def shared(self, shares: np.ndarray) -> "WordFrequencies":
        """Frequencies with counts multiplied by shares ``(W,)`` or booleans; words of count 0 are dropped."""
        counts = np.where(shares == 1, self.counts, np.rint(self.counts * shares).astype(np.int64))
        left = np.flatnonzero(counts)
        groups = None if self.groups is None else self.groups[left]
        return WordFrequencies(tuple(self.words[index] for index in left.tolist()), counts[left], groups)

    def of_kind(self, kinds: "Kinds | None", kind: Kind) -> "WordFrequencies":
        """Frequencies of the words of a kind; this object if the kind restricts nothing."""
        weights = None if kinds is None else kinds.weights(self.words, kind)
        return self if weights is None else self.shared(weights)

    def items(self) -> Iterable[tuple[str, int]]:
        """Each word with its count."""
        return zip(self.words, self.counts.tolist(), strict=True)

    @cached_property
    def folded(self) -> set[str]:
        """The words, folded."""
        return set(map(fold, self.words))

    @cached_property
    def usual_forms(self) -> dict[str, str]:
        """From folded words that are hardly ever in lower case to their usual forms."""
        return usual_forms(self.items())

    def off_list_probabilities(self, allowed_words: AllowedWords) -> dict[str, float]:
        """From folded word to its probability in a draw by frequency among the words not on the list."""
        counts = self.shared(allowed_words.off_list(self.words))._folded_counts()
        total = sum(counts.values())
        return {word: count / total for word, count in counts.items()}

    def ranks(self) -> dict[str, int]:
        """From folded word to its rank by count, from 1; equal counts in the order of code points."""
        counts = self._folded_counts()
        order = sorted(counts, key=lambda word: (-counts[word], word))
        return {word: rank for rank, word in enumerate(order, start=1)}

    def _folded_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for word, count in self.items():
            folded = fold(word)
            counts[folded] = counts.get(folded, 0) + count
        return counts


STRENGTHS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
"""Strengths to try; 0 does not change the frequencies."""
_LARGEST_SCORE = 6.0
_OCCURRENCES = 20.0
"""K."""
_SMOOTHING_WORDS = 1000.0
_LARGEST_COUNT = 2**62
_REMEMBERED_STRETCHES = 1 << 17


@dataclass(frozen=True)
class EstimatedFrequencies:
    """Word frequencies of a private text by an estimate."""

    frequencies: WordFrequencies
    """The same words with new counts."""
    measured: dict[str, Any]
    """Figures for a report."""


def domain_frequencies(
    frequencies: WordFrequencies, masked: Iterable[str], text: "GenericText"
) -> EstimatedFrequencies:
    """Reweight ``frequencies`` by the masked lines of a corpus and by generic text, read for the same words.

    Figures: the chosen strength, and for each strength the mean log-probability in nats of a held-out unmasked word.
    Also the number of generic sentences, and of different words that both texts have. Memory grows with the generic
    text, by four bytes a word. Raises ``CorpusError`` if the texts share no word.
    """
    index = text.index
    known = _counts(_known_texts(masked), index)  # (W,)
    shown = (known > 0) & (text.counts > 0)
    if not shown.any():
        raise CorpusError(
            "the masked text and the generic text have no word in common, so generic text cannot be reweighted; give "
            "generic text of the same language, or set prior: word_counts"
        )
    base = np.zeros(len(index))
    places = np.array([index[fold(word)] for word in frequencies.words])
    np.add.at(base, places, frequencies.counts.astype(np.float64))
    half = np.array([zlib.crc32(word.encode()) & 1 for word in index], dtype=bool)
    likelihood = dict.fromkeys(STRENGTHS, 0.0)
    held_out = 0.0
    for side in (half, ~half):
        judged = shown & ~side & (base > 0)
        if not (shown & side).any() or not judged.any():
            continue
        scores = text.scores(known, shown & side)
        held_out += known[judged].sum()
        for strength in STRENGTHS:
            weighted = base[judged] * text.multipliers(scores, strength, ~side)[judged]
            likelihood[strength] += float((known[judged] * np.log(weighted / weighted.sum())).sum())
    # Among equals, the first is the weakest.
    strength = max(STRENGTHS, key=lambda one: likelihood[one])
    multipliers = text.multipliers(text.scores(known, shown), strength, ~shown)
    weighted = frequencies.counts * multipliers[places]
    # Counts are integers: scale them up first, so that rounding is negligible.
    scale = min(1000.0, _LARGEST_COUNT / max(1.0, float(weighted.sum())))
    counts = np.maximum(1, np.rint(weighted * scale)).astype(np.int64)
    measured = {
        "strength": strength,
        "log_likelihood": {str(one): value / held_out for one, value in likelihood.items()} if held_out else {},
        "generic_sentences": text.sentences,
        "known_words": int(np.count_nonzero(shown)),
    }
    return EstimatedFrequencies(WordFrequencies(frequencies.words, counts), measured)


def _known_texts(masked: Iterable[str]) -> Iterable[str]:
    for line in masked:
        yield from read_masked_line(line, 1, merge_markers=False).texts


def _counts(texts: Iterable[str], index: dict[str, int]) -> np.ndarray:
    found = array("i", chain.from_iterable(_numbers_of(index, text) for text in texts))
    return np.bincount(np.frombuffer(found, dtype=np.int32), minlength=len(index)).astype(np.float64)


def _numbers_of(index: dict[str, int], text: str) -> tuple[int, ...]:
    return tuple(number for word in folded_words(text) if (number := index.get(word)) is not None)


@dataclass(frozen=True)
class GenericText:
    """Generic text as word indices; words without a frequency are left out."""

    index: dict[str, int]
    """From folded word to its number."""
    words: np.ndarray
    """``(N,)`` int32."""
    sentence: np.ndarray
    """``(N,)`` sentence of each word, from 0."""
    counts: np.ndarray
    """``(W,)`` float64 occurrences of each word."""
    sentences: int

    @classmethod
    def read(cls, lines: Iterable[str], frequencies: WordFrequencies) -> "GenericText":
        """The words of ``frequencies`` in the lines."""
        index = {word: number for number, word in enumerate(dict.fromkeys(map(fold, frequencies.words)))}
        # Cached by strings without white space, since text repeats them.
        numbers_of = lru_cache(maxsize=_REMEMBERED_STRETCHES)(partial(_numbers_of, index))
        words, lengths = array("i"), array("i")
        for line in lines:
            before = len(words)
            words.extend(chain.from_iterable(map(numbers_of, line.split())))
            lengths.append(len(words) - before)
        numbers = np.frombuffer(words, dtype=np.int32) if words else np.zeros(0, dtype=np.int32)
        sentence = np.repeat(np.arange(len(lengths), dtype=np.int32), np.frombuffer(lengths, dtype=np.int32))
        return cls(
            index, numbers, sentence, np.bincount(numbers, minlength=len(index)).astype(np.float64), len(lengths)
        )

    def scores(self, known: np.ndarray, shown: np.ndarray) -> np.ndarray:
        """``(S,)`` log-ratio of each sentence between masked and generic text, by the ``shown`` words."""
        generic = self.counts * shown
        generic /= generic.sum()
        masked = (known * shown + _SMOOTHING_WORDS * generic) / ((known * shown).sum() + _SMOOTHING_WORDS)
        log_ratio = np.zeros(len(known))
        log_ratio[shown] = np.log(masked[shown] / generic[shown])
        sums = np.bincount(self.sentence, weights=log_ratio[self.words], minlength=self.sentences)
        numbers = np.bincount(self.sentence, weights=shown[self.words], minlength=self.sentences)
        return np.clip(sums / np.sqrt(np.maximum(numbers, 1)), -_LARGEST_SCORE, _LARGEST_SCORE)

    def multipliers(self, scores: np.ndarray, strength: float, unchanged: np.ndarray) -> np.ndarray:
        """``(W,)`` factors of the counts. The words of ``unchanged``, ``(W,)`` booleans, have the same total count."""
        weights = np.exp(strength * scores)[self.sentence]  # (N,)
        weighted = np.bincount(self.words, weights=weights, minlength=len(self.counts))
        total = weighted[unchanged].sum()
        if total > 0:
            weighted *= self.counts[unchanged].sum() / total
        return (weighted + _OCCURRENCES) / (self.counts + _OCCURRENCES)
