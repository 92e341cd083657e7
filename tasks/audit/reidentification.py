"""Guesses of masked words by a masked language model, compared with guesses by word frequency alone.

The attacker knows the masked text, the technique's list of words left unmasked, and public word counts. The candidates
are the counted words that are not on that list. p(w) is the share of w in the counts, p(w | x) the model's probability
of w in the masked line, and p_mean(w) its mean over all attacked places. The score of a word of one token is

    p(w) * (p(w | x) + e p(w)) / (p_mean(w) + e p(w)),    e = 0.03

which replaces the model's own prior by that of masked words (Saerens et al. 2002, equation 2.4). Words of several
tokens have the score p(w). A technique without a list is a tagger: p(w) is then weighted by how often public text
writes the word with a capital or a digit, or as the marker's class demands. A tenth of it is the share of w among
unmasked words of this form nearby in the document. A masked word that is no candidate ranks after all candidates. A
surrogate has the class and form of the masked word, so words of another form count a hundredth.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from tasks.audit.figure import Figure, share_figure
from tasks.audit.masked_places import MaskedPlace
from tasks.audit.reranking import MOST, Contested, lines_with_guesses, new_ranks
from tasks.corpora.masked_text import MASK
from tasks.corpora.sources.published_frequencies import published_counts
from tasks.corpora.word_counts import read_word_counts
from tasks.corpora.words import fold
from tasks.errors import ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.masked_lm.candidate_words import CandidateWords, candidate_words
from tasks.filling.masked_lm.places import candidate_log_probabilities
from tasks.filling.masked_lm.weighing import mean_probabilities
from tasks.filling.masked_sentence import Casing, Form, usual_forms
from tasks.filling.settings import SHIPPED_FILLER
from tasks.filling.surrogates.words_by_frequency import form_of

if TYPE_CHECKING:
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
    from tasks.language_model.language_models import LanguageModel

TOPS = (1, 10, 100)
_NEAR = 0.1
"""Share of unmasked words nearby; 0.05 or 0.2, and 3 or 30 lines, found as much."""
_TOLD = 0.1
"""Share of words of background passages; 0.3 and 0.5 found fewer on the chat corpus."""
_SMOOTHING = 0.03
"""e: of 0.03 to 1 the best on the chat corpus, by a small margin."""
_OTHER_FORM = 0.01
"""Weight of a word that public text never writes in the form of its class."""
_NAMES = frozenset(("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS"))
_FIGURES = frozenset(("NUMBER", "MONEY", "CONTACT", "IDENTIFIER"))
_NEARLY_ALWAYS = 0.9


class WordList:
    """The attacker's candidates, and the prior probability of each."""

    def __init__(self, counts: Iterable[tuple[str, int]], allowed_words: AllowedWords) -> None:
        """``counts``: cased words in public text."""
        total, capital = Counter[str](), Counter[str]()
        for word, count in counts:
            folded = fold(word)
            if count > 0 and not allowed_words.holds(folded):
                total[folded] += count
                capital[folded] += count if word != word.lower() else 0
        self.index = {word: number for number, word in enumerate(total)}
        self.has_allowed_words = bool(allowed_words)
        self._counts = np.array(list(total.values()), dtype=np.float64)
        self._capital = np.array([capital[word] for word in total]) / self._counts
        self._figure = np.array([any(map(str.isdigit, word)) for word in total], dtype=np.float64)
        self._by_label: dict[str, np.ndarray] = {}
        self._of_form: dict[Form, np.ndarray] = {}

    def prior(self, label: str = MASK) -> np.ndarray:
        """``(L,)`` prior probabilities of the words where a marker has this class."""
        if label not in self._by_label:
            known = label != MASK or not self.has_allowed_words
            weighed = self._counts * (self._form(label) + _OTHER_FORM if known else 1)
            self._by_label[label] = weighed / weighed.sum()
        return self._by_label[label]

    def prior_near(self, label: str, near: Iterable[str], passages: Mapping[str, float] | None = None) -> np.ndarray:
        """``(L,)`` prior probabilities, given the folded unmasked words ``near`` the place in the document, and weights
        of words of background ``passages``. If the technique has a list, the words nearby are on it and are no
        candidates."""
        seen = np.bincount([self.index[word] for word in near if word in self.index], minlength=len(self.index))
        seen = np.where(self._form(label) > 0.5, seen, 0)
        prior = self.prior(label)
        prior = (1 - _NEAR) * prior + _NEAR * seen / seen.sum() if seen.any() else prior.copy()
        said = {self.index[word]: weight for word, weight in (passages or {}).items() if word in self.index}
        if said:
            told = np.bincount(list(said), list(said.values()), len(self.index))
            told *= 1 if self.has_allowed_words else self._form(label)
            prior = (1 - _TOLD) * prior + _TOLD * told / told.sum() if told.any() else prior
        return prior

    def of_form(self, substitute: str) -> np.ndarray:
        """``(L,)`` weights of the words, given a substitute that follows the form of the masked word."""
        known = self.index.get(fold(substitute))
        form = self._forms[known] if known is not None else form_of(substitute, has_capital=substitute[:1].isupper())
        if form not in self._of_form:
            self._of_form[form] = np.array([1.0 if each == form else _OTHER_FORM for each in self._forms])
        return self._of_form[form]

    @cached_property
    def _forms(self) -> list[Form]:
        return [
            form_of(word, has_capital=capital >= _NEARLY_ALWAYS)
            for word, capital in zip(self.index, self._capital, strict=True)
        ]

    def _form(self, label: str) -> np.ndarray:
        return np.maximum(0 if label in _FIGURES else self._capital, 0 if label in _NAMES else self._figure)


class Reader:
    """A masked language model that reads masked lines and scores the words of a list."""

    def __init__(self, model: "MaskedLanguageModel", candidates: CandidateWords, words: WordList) -> None:
        """Raises ``ModelError`` if no word of the list is one token of the model."""
        column = np.array([words.index.get(fold(word), -1) for word in candidates.words])  # (W,)
        self._model, self._candidates, self.words = model, candidates, words
        self._allowed = column >= 0
        if not self._allowed.any():
            raise ModelError(
                f"attacker {model.name!r} has no word of the word counts that a technique would mask: nothing to "
                "guess; take a model of the text's language"
            )
        self._column, inverse = np.unique(column[self._allowed], return_inverse=True)  # (C,), (A,)
        self._forms = np.argsort(inverse, kind="stable")
        self._starts = np.searchsorted(inverse[self._forms], np.arange(len(self._column)))
        self._mean = np.zeros(len(self._column))
        self._smooth = words.prior()[self._column] / words.prior()[self._column].sum() * _SMOOTHING  # (C,)

    def guesses(self, places: Sequence[MaskedPlace]) -> Iterator[np.ndarray]:
        """For each place ``(L,)`` unnormalised probabilities of the words; below 0: a word that cannot occur
        there. The places of the first call give the model's mean of each word. Takes some 100 KB a place."""
        opened = [place.open for place in places]
        table = candidate_log_probabilities(self._model, self._candidates, self._allowed, opened)  # (N, A)
        rows = [row for row, place in enumerate(places) if any(place.around)]
        if rows:
            opened = [places[row].in_context for row in rows]
            others = candidate_log_probabilities(self._model, self._candidates, self._allowed, opened)
            table[rows] = np.logaddexp(table[rows], others) - np.log(2)
        if not self._mean.any():
            self._mean = self._by_word(mean_probabilities(table))  # (C,)
        for row, place in zip(table, places, strict=True):
            guesses = self.words.prior_near(place.label, place.near, place.passages)
            if place.substitute is not None and place.label == MASK:
                guesses *= self.words.of_form(place.substitute)
            said = self._by_word(np.exp(row.astype(np.float64)))  # (C,)
            weighed = guesses[self._column] * (said + self._smooth) / (self._mean + self._smooth)
            # The words that are one token keep their total probability by frequency.
            guesses[self._column] = weighed * (guesses[self._column].sum() / weighed.sum())
            yield guesses

    def _by_word(self, of_candidates: np.ndarray) -> np.ndarray:
        return np.add.reduceat(of_candidates[self._forms], self._starts)


@dataclass(frozen=True)
class Reading:
    """A masked language model's guesses at all places."""

    places: Sequence[MaskedPlace]
    reader: Reader
    ranks: np.ndarray
    """Rank of each place's word (N,), from 1."""
    contested: Mapping[int, Contested]
    """Places whose word is among the ``MOST`` best guesses, by index."""
    targets: np.ndarray
    """Index of each place's word (N,); -1 if it is no candidate."""
    public: Sequence[tuple[str, int]]
    """Cased words with their counts in public text: the usual case of a guess in a line."""

    @classmethod
    def of(cls, places: Sequence[MaskedPlace], reader: Reader, public: Sequence[tuple[str, int]] = ()) -> Self:
        """The guesses of a reader; equally likely words share their mean rank."""
        ranks, contested = np.empty(len(places)), {}
        targets = [reader.words.index.get(place.original, -1) for place in places]
        for row, (place, target, guesses) in enumerate(zip(places, targets, reader.guesses(places), strict=True)):
            ranks[row] = _rank(guesses, target)
            if ranks[row] <= MOST:
                best = _best(guesses, MOST)
                if target in best:
                    contested[row] = Contested(place, target, best, guesses[best])
        return cls(places, reader, ranks, contested, np.array(targets, dtype=np.int64), public)

    @property
    def is_listed(self) -> np.ndarray:
        """Whether each place's word is a candidate (N,), bool."""
        return self.targets >= 0

    @cached_property
    def blind(self) -> np.ndarray:
        """The ranks (N,) for an attacker who goes by frequency."""
        pairs = zip(self.places, self.targets.tolist(), strict=True)
        return np.array([_rank(self.reader.words.prior(place.label), target) for place, target in pairs])

    @cached_property
    def lines(self) -> Mapping[int, Sequence[str]]:
        """The lines of the contested places with each of the best guesses (B,), by index."""
        casing = Casing(usual_forms(self.public), filler_is_cased=False)
        contested, words = list(self.contested.values()), list(self.reader.words.index)
        return dict(zip(self.contested, lines_with_guesses(contested, self.reader, words, casing), strict=True))

    def reranked(self, model: "LanguageModel") -> np.ndarray:
        """The ranks (N,) after a causal language model has reordered the best guesses."""
        lines = [[tuple(line.split()) for line in of_place] for of_place in self.lines.values()]
        return self.reordered(model.score_sentences(lines) if lines else [])

    def reordered(self, scores: Sequence[np.ndarray]) -> np.ndarray:
        """The ranks (N,) after the best guesses are reordered by scores of their ``lines`` (B,), in nats."""
        ranks = self.ranks.copy()
        ranks[list(self.contested)] = new_ranks(list(self.contested.values()), scores)
        return ranks


def _best(guesses: np.ndarray, most: int) -> np.ndarray:
    """Indices of the ``most`` largest, the first of equal ones before the others."""
    if len(guesses) > most:
        among = np.flatnonzero(guesses >= np.partition(guesses, -most)[-most])
    else:
        among = np.arange(len(guesses))
    return among[np.argsort(-guesses[among], kind="stable")][:most]


def _rank(guesses: np.ndarray, target: int) -> float:
    """The rank of a target, with the mean of tied ranks; ``target`` -1: no candidate."""
    if target < 0:
        return len(guesses) + 1
    return float(np.count_nonzero(guesses > guesses[target]) + (np.count_nonzero(guesses == guesses[target]) + 1) / 2)


def figures_of(reading: Reading, attacker: str, reranker: "LanguageModel | None" = None) -> dict[str, Figure]:
    """Figures of at least one place; intervals of shares resample lines."""
    places, ranks = reading.places, reading.ranks if reranker is None else reading.reranked(reranker)
    line = np.unique([place.line for place in places], return_inverse=True)[1]

    def share(hits: np.ndarray, blind: float | None = None) -> Figure:
        return share_figure(np.bincount(line, hits).tolist(), np.bincount(line).tolist(), attacker, blind)

    known, blind = (np.where(reading.is_listed, of, np.inf) for of in (ranks, reading.blind))
    figures = {f"reidentified_{top}": share(known <= top, float((blind <= top).mean())) for top in TOPS}
    figures["reidentified_listed"] = share(reading.is_listed)
    # Ends by order statistics: 1.96 standard deviations of the number of ranks below the median.
    away = 0.98 / len(places) ** 0.5
    low, median, high = np.quantile(ranks, [max(0, 0.5 - away), 0.5, min(1, 0.5 + away)]).tolist()
    figures["median_rank"] = Figure(median, (low, high), attacker, float(np.median(reading.blind)), len(places))
    return figures


class Guesser:
    """An attacker who has public word counts, the list of never-masked words and a masked language model.

    Each reading is made once.
    """

    def __init__(
        self,
        filler: str = SHIPPED_FILLER,
        threads: int = 1,
        allowed_words: str | Path | None = None,
        word_counts: str | Path | None = None,
    ) -> None:
        """``filler``: any masked language model by hub name or folder. ``allowed_words``: the technique's list; empty
        or ``None`` if none. ``word_counts``: of public text, by default the published list."""
        self.name, self._threads, self._allowed_words = filler, threads, AllowedWords.read(allowed_words)
        self.counts = list(read_word_counts(word_counts) if word_counts else published_counts())
        self.words = WordList(self.counts, self._allowed_words)
        self._made: list[tuple[object, object, Reading]] = []

    @cached_property
    def _model(self) -> "MaskedLanguageModel":
        from tasks.filling.opened_filler import OpenedFiller

        return OpenedFiller(self.name, self._threads).masked

    def reading(self, places: Sequence[MaskedPlace], counts: Sequence[tuple[str, int]] | None = None) -> Reading:
        """The guesses at places; ``counts`` in place of the public ones."""
        counts = self.counts if counts is None else counts
        for made, by, reading in self._made:
            if made is places and by is counts:
                return reading
        words = self.words if counts is self.counts else WordList(counts, self._allowed_words)
        candidates = candidate_words(self._model.tokenizer, name=self._model.name, known_words=words.index.keys())
        reading = Reading.of(places, Reader(self._model, candidates, words), self.counts)
        self._made.append((places, counts, reading))
        return reading


def reidentification(places: Sequence[MaskedPlace], guesser: Guesser, reranker: str | None = None) -> dict[str, Figure]:
    """``reidentified_1``, ``_10``, ``_100``, the share of masked words among so many best guesses;
    ``reidentified_listed``, the share among all candidates, an upper bound; and ``median_rank``.

    ``reranker``: a causal language model that reorders the best guesses.
    """
    known = "words off the list of never-masked words"
    if not guesser.words.has_allowed_words:
        known = "words, names and figures first, above all unmasked ones nearby"
    attacker = (
        f"{guesser.name} reads the masked line, weighed by word counts; guesses {len(guesser.words.index):,} {known}"
    )
    if reranker:
        attacker += f"; {reranker} reorders the {MOST} best"
    if any(place.substitute for place in places):
        attacker += "; of the class and form of what the fill writes"
    if not places:
        names = [*(f"reidentified_{top}" for top in TOPS), "reidentified_listed", "median_rank"]
        return dict.fromkeys(names, Figure(None, None, attacker))
    model = None
    if reranker:
        from tasks.language_model.causal_lm.folder import load_for_scoring

        model = load_for_scoring(reranker)
    return figures_of(guesser.reading(places), attacker, model)
