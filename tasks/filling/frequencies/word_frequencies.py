"""How often words occur in generic text: what ``unigram`` draws from, and what guessing by frequency would restore.

The list of kept words of a masking technique, as the off-list rule sees it (paper 3.2).

A technique that keeps the words of a list masks only words that are *not* on it, so a fill that is on the list cannot
be of the kind of the word it replaces. The file has one folded word a line; an empty file (entity tagger) means that
there is no list and every word may be a fill.

How frequent words are in the private domain, estimated from generic text and the words that were not masked.

Generic frequencies say how often people write a word, not how often they do so in a chat or in a call about a company's
results. The masked words themselves may not be looked at; but the words round them may, and generic text has sentences
that are more like the private ones and sentences that are less. So each generic sentence ``s`` gets a weight by the
words ``v`` in it that the masked text shows (naive Bayes over one sentence, as in the data selection of Moore and Lewis
2010, "Intelligent selection of language model training data"):

    score(s) = sum over v of log(p_masked(v) / p_generic(v)) / sqrt(number of v),    clipped to -6 ... 6
    weight(s) = exp(strength * score(s)),    scaled so that unseen words keep their number

and the frequency of every word ``w`` is multiplied by how much more often it stands in weighted sentences:

    frequency(w) * (sum of weight(s) over the occurrences of w + K) / (occurrences of w + K),    K = 20

K keeps the estimate of a word that generic text hardly has near 1, and p_masked is smoothed with 1,000 words of
generic text.

The strength is chosen without private words too: the words that the masked text shows are divided into two halves,
sentences are weighted by one half, and the strength is taken under which the frequencies of the other half, as the
masked text has them, are most probable; both halves in turn.
"""

import zlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tasks.corpora.word_counts import read_word_counts
from tasks.corpora.word_list import read_word_list
from tasks.corpora.words import fold, folded_words
from tasks.errors import CorpusError
from tasks.filling.fill_words import is_latin
from tasks.filling.masked_lm.candidate_words import is_letter, is_word
from tasks.filling.masked_sentence import read_masked_line

_NEARLY_ALL = 0.9


class KeptWords:
    """Folded words that a technique never masks; empty where a technique has no list."""

    def __init__(self, words: Iterable[str] = (), by_language: Mapping[str, Collection[str]] | None = None) -> None:
        """``by_language``: words that it never masks where they are of this language."""
        self._words, self._by_language = frozenset(words), by_language or {}

    @classmethod
    def read(cls, path: str | Path | None) -> "KeptWords":
        """Read ``kept_words.txt``: a word a line, or ``word<TAB>language`` where it is kept as a word of that language
        alone; ``None`` is no list. Raises ``CorpusError`` where the file is none."""
        if path is None:
            return cls()
        words = read_word_list(path, empty=True, of_languages=True)
        return cls(words.words, words.by_language)

    def __bool__(self) -> bool:
        return bool(self._words or self._by_language)

    def __len__(self) -> int:
        return len(self._words)

    def holds(self, word: str, language: str | None = None) -> bool:
        """Whether the word, folded, is on the list; as a word of a language, if one is given."""
        folded = fold(word)
        return folded in self._words or folded in self._by_language.get(language or "", ())

    def off_list(self, words: Iterable[str], language: str | None = None) -> np.ndarray:
        """``(W,)`` booleans: which of the words are not on the list (all of them where there is none)."""
        return np.array([not self.holds(word, language) for word in words], dtype=bool)


@dataclass(frozen=True)
class WordFrequencies:
    """Cased words and their counts; entries that may not stand for a marker are left out, and single letters where they
    are not asked for."""

    words: tuple[str, ...]
    counts: np.ndarray
    """``(W,)`` int64."""
    groups: np.ndarray | None = None
    """``(W,)`` int64: words of which the text to be filled is known to have so many together, as counts of its masked
    words say (``counted_frequencies``); -1 where nothing is known. ``None``: nothing is."""

    @classmethod
    def of(cls, counts: Iterable[tuple[str, int]], *, letters: bool = False) -> "WordFrequencies":
        """Take the words of a word list, and with ``letters`` single letters too. Of a list that is nearly all in the
        Latin script, words of other scripts are left out: a fill of them is a riddle to the readers of that text."""
        kept = [
            (word, count) for word, count in counts if count > 0 and (is_word(word) or (letters and is_letter(word)))
        ]
        latin = [word.isascii() or is_latin(word) for word, _ in kept]
        if sum(latin) >= _NEARLY_ALL * len(kept):
            kept = [entry for entry, keep in zip(kept, latin, strict=True) if keep]
        numbers = np.array([count for _, count in kept], dtype=np.int64)
        return cls(tuple(word for word, _ in kept), numbers)

    @classmethod
    def read(cls, path: str | Path, *, letters: bool = False) -> "WordFrequencies":
        """Read ``word_counts.tsv``; ``CorpusError`` where it is missing, damaged or holds no word."""
        frequencies = cls.of(read_word_counts(path), letters=letters)
        if not frequencies.words:
            raise CorpusError(
                f"word counts {str(path)!r} hold no word; 'palimpsest count-words' makes them from a text"
            )
        return frequencies

    @classmethod
    def published(cls, languages: Sequence[str] = (), *, letters: bool = False) -> "WordFrequencies":
        """Those of the published lists of the languages, or of English, where a user has no counts."""
        from tasks.corpora.sources.published_frequencies import published_counts

        counts: Counter[str] = Counter()
        for language in languages or ["en"]:
            counts.update(dict(published_counts(language)))
        return cls.of(counts.items(), letters=letters)

    def shared(self, shares: np.ndarray) -> "WordFrequencies":
        """The ``(W,)`` share of each word's count, or booleans; words of which none is left are left out."""
        counts = np.where(shares == 1, self.counts, np.rint(self.counts * shares).astype(np.int64))
        left = np.flatnonzero(counts)
        groups = None if self.groups is None else self.groups[left]
        return WordFrequencies(tuple(self.words[index] for index in left.tolist()), counts[left], groups)

    def folded(self) -> set[str]:
        """The words, folded."""
        return set(map(fold, self.words))

    def off_list_probabilities(self, kept: KeptWords) -> dict[str, float]:
        """Folded word to the chance that a draw by frequency among the words off the list gives it."""
        counts = self.shared(kept.off_list(self.words))._folded_counts()
        total = sum(counts.values())
        return {word: count / total for word, count in counts.items()}

    def ranks(self) -> dict[str, int]:
        """Folded word to its rank by count, from 1; equal counts in the order of the words' code points."""
        counts = self._folded_counts()
        order = sorted(counts, key=lambda word: (-counts[word], word))
        return {word: rank for rank, word in enumerate(order, start=1)}

    def _folded_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for word, count in zip(self.words, self.counts.tolist(), strict=True):
            folded = fold(word)
            counts[folded] = counts.get(folded, 0) + count
        return counts


STRENGTHS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
"""Those that are tried; 0 leaves the frequencies as they are."""
_LARGEST_SCORE = 6.0
_OCCURRENCES = 20.0
"""K."""
_SMOOTHING_WORDS = 1000.0
_LARGEST_COUNT = 2**62
_REMEMBERED_STRETCHES = 1 << 17


@dataclass(frozen=True)
class DomainFrequencies:
    """Word frequencies of the domain, and how they were found."""

    frequencies: WordFrequencies
    """The same words, other counts."""
    strength: float
    """The one that was chosen."""
    log_likelihood: dict[float, float]
    """Strength to the mean log-probability in nats of a held-out known word of the masked text."""
    generic_sentences: int
    known_words: int
    """Different words of the masked text that generic text has too."""

    def measured(self) -> dict[str, Any]:
        """What a report says of it."""
        return {
            "strength": self.strength,
            "log_likelihood": {str(one): value for one, value in self.log_likelihood.items()},
            "generic_sentences": self.generic_sentences,
            "known_words": self.known_words,
        }


def domain_frequencies(
    frequencies: WordFrequencies, masked: Iterable[str], generic: Iterable[str]
) -> DomainFrequencies:
    """Weigh ``frequencies`` by the masked lines of a corpus and by lines of generic text.

    Memory grows with the generic text, by four bytes a word. Raises ``CorpusError`` where the two texts have no word
    in common.
    """
    index = {word: number for number, word in enumerate(dict.fromkeys(map(fold, frequencies.words)))}
    known = _counts(_known_texts(masked), index)  # (W,)
    text = _GenericText.read(generic, index)
    shown = (known > 0) & (text.counts > 0)
    if not shown.any():
        raise CorpusError(
            "the masked text and the generic text have no word in common, so there is nothing to weigh generic text "
            "by; give generic text of the same language, or set prior: word_counts"
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
    # Of equals the weakest: the first.
    strength = max(STRENGTHS, key=lambda one: likelihood[one])
    multipliers = text.multipliers(text.scores(known, shown), strength, ~shown)
    weighted = frequencies.counts * multipliers[places]
    # Counts are whole numbers: scaled up first, so that rounding loses nothing that matters.
    scale = min(1000.0, _LARGEST_COUNT / max(1.0, float(weighted.sum())))
    counts = np.maximum(1, np.rint(weighted * scale)).astype(np.int64)
    return DomainFrequencies(
        WordFrequencies(frequencies.words, counts),
        strength,
        {one: value / held_out for one, value in likelihood.items()} if held_out else {},
        text.sentences,
        int(np.count_nonzero(shown)),
    )


def _known_texts(masked: Iterable[str]) -> Iterable[str]:
    for line in masked:
        yield from read_masked_line(line, 1, merge_markers=False).texts


def _counts(texts: Iterable[str], index: dict[str, int]) -> np.ndarray:
    found = array("i", chain.from_iterable(_numbers_of(index, text) for text in texts))
    return np.bincount(np.frombuffer(found, dtype=np.int32), minlength=len(index)).astype(np.float64)


def _numbers_of(index: dict[str, int], text: str) -> tuple[int, ...]:
    return tuple(number for word in folded_words(text) if (number := index.get(word)) is not None)


@dataclass(frozen=True)
class _GenericText:
    """Generic text as numbers of words; words without a frequency are left out."""

    words: np.ndarray
    """``(N,)`` int32."""
    sentence: np.ndarray
    """``(N,)`` the sentence of each, from 0."""
    counts: np.ndarray
    """``(W,)`` float64 occurrences of each word."""
    sentences: int

    @classmethod
    def read(cls, lines: Iterable[str], index: dict[str, int]) -> "_GenericText":
        # Stretches without white space are remembered, since text repeats itself.
        numbers_of = lru_cache(maxsize=_REMEMBERED_STRETCHES)(partial(_numbers_of, index))
        words, lengths = array("i"), array("i")
        for line in lines:
            before = len(words)
            words.extend(chain.from_iterable(map(numbers_of, line.split())))
            lengths.append(len(words) - before)
        numbers = np.frombuffer(words, dtype=np.int32) if words else np.zeros(0, dtype=np.int32)
        sentence = np.repeat(np.arange(len(lengths), dtype=np.int32), np.frombuffer(lengths, dtype=np.int32))
        return cls(numbers, sentence, np.bincount(numbers, minlength=len(index)).astype(np.float64), len(lengths))

    def scores(self, known: np.ndarray, shown: np.ndarray) -> np.ndarray:
        """``(S,)`` how much more like the masked text than like generic text a sentence is, by the ``shown`` words."""
        generic = self.counts * shown
        generic /= generic.sum()
        masked = (known * shown + _SMOOTHING_WORDS * generic) / ((known * shown).sum() + _SMOOTHING_WORDS)
        log_ratio = np.zeros(len(known))
        log_ratio[shown] = np.log(masked[shown] / generic[shown])
        sums = np.bincount(self.sentence, weights=log_ratio[self.words], minlength=self.sentences)
        numbers = np.bincount(self.sentence, weights=shown[self.words], minlength=self.sentences)
        return np.clip(sums / np.sqrt(np.maximum(numbers, 1)), -_LARGEST_SCORE, _LARGEST_SCORE)

    def multipliers(self, scores: np.ndarray, strength: float, kept: np.ndarray) -> np.ndarray:
        """``(W,)``; the words of ``kept`` (``(W,)`` booleans) keep their number of occurrences together."""
        weights = np.exp(strength * scores)[self.sentence]  # (N,)
        weighted = np.bincount(self.words, weights=weights, minlength=len(self.counts))
        total = weighted[kept].sum()
        if total > 0:
            weighted *= self.counts[kept].sum() / total
        return (weighted + _OCCURRENCES) / (self.counts + _OCCURRENCES)
