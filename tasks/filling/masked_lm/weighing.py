"""What ``log_linear`` learns before the first line is filled, once for all devices.

Reads generic text, word counts, kept words, and for ``prior: counted`` the masked text; never the
sidecar. What ``prior: counted`` learns from that has its noise already when it comes here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpora.text_lines import read_corpus
from tasks.corpora.words import fold
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.filling.context import FillContext
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.estimation import (
    LearnedWeights,
    fit_weights,
    match_frequencies,
    mean_probabilities,
    place_of_weights,
    shipped_weights,
)
from tasks.filling.masked_lm.places import candidate_log_probabilities, places_of_corpus, tuning_text
from tasks.filling.methods.log_linear import LogLinear, LogLinearScores
from tasks.filling.settings import SHIPPED_FILLER

if TYPE_CHECKING:
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

_START = {"filler": 1.0, "frequency": 0.0, "average": 0.0}
"""Weights of ``sample``."""


@dataclass(frozen=True)
class PreparedWeighing:
    """What the choice of words needs, and what the report says of it."""

    allowed: np.ndarray
    """``(W,)`` booleans: the candidates among the words that the filler can write."""
    scores: LogLinearScores
    """Of all words that the filler can write."""
    measured: dict[str, Any]
    frequencies: WordFrequencies
    """How frequent words are taken to be, those that the filler cannot write among them."""


def prepare(context: FillContext, settings: LogLinear, wanted: WordFrequencies) -> PreparedWeighing:
    """Learn weights and prior for a fill.

    ``wanted``: how frequent words are, the same words as in the word counts; weights are learned by the word counts
    themselves, so that what is kept of them says nothing of a private text. Raises ``CorpusError`` where no tuning
    place is found, ``ParameterError`` where there is no text to learn from, and ``ModelError`` where the filler cannot
    be used, or can write no candidate.
    """
    tuned_on = context.files.tuning_text if settings.learns_weights else None
    if settings.learns_weights and not tuned_on and context.files.filler != SHIPPED_FILLER:
        raise ParameterError(
            f"method {settings.kind!r} learns its weights from generic text; give --generic with its folder, leave "
            "--filler out, or fix all its weights in params.yaml, average as 0"
        )
    return prepared_weighing(
        context.model.masked,
        context.candidates,
        context.kept,
        wanted,
        settings,
        read_corpus(tuned_on) if tuned_on else None,
        context.masked if settings.counts_masked_words else None,
        known=shipped_weights() if settings.learns_weights and not tuned_on else None,
        learned_by=context.frequencies,
        place=partial(place_of_weights, context, settings) if tuned_on else None,
    )


def prepared_weighing(
    model: "MaskedLanguageModel",
    candidates: CandidateWords,
    kept: KeptWords,
    frequencies: WordFrequencies,
    settings: LogLinear,
    lines: Sequence[str] | None,
    corpus: Sequence[str] | None,
    *,
    known: LearnedWeights | None = None,
    learned_by: WordFrequencies | None = None,
    place: Callable[[Sequence[str], np.ndarray], Path] | None = None,
) -> PreparedWeighing:
    """The same from objects: ``lines`` of generic text, if needed; ``corpus``: masked lines, where words were
    counted; ``known``: weights that were learned before; ``learned_by``: how frequent the same words are in generic
    text, where ``frequencies`` are others; ``place``: the file that keeps the weights that are learned here, by the
    words to choose from and their counts."""
    counts = _counts_of_candidates(candidates, frequencies)
    public = _counts_of_candidates(candidates, learned_by) if learned_by else counts
    allowed = kept.off_list(candidates.words) & (counts > 0) & (public > 0)
    if not allowed.any():
        raise ModelError(
            f"filler {model.name!r} can write no word that is off the list of kept words and in the word counts: "
            "nothing to choose"
        )
    log_frequency = np.log(counts[allowed] / counts[allowed].sum())  # (A,)
    learner = _Learner(model, candidates, kept, settings, allowed, np.log(public[allowed] / public[allowed].sum()))
    path = place(learner.words, public[allowed]) if place else None
    if path is not None and path.exists():
        known = LearnedWeights.read(path)
    if known is not None:
        learner.take(known)
    elif lines is not None:
        learner.read(lines)
        known = learner.learned()
        if path is not None:
            known.write(path)
        learner.take(known)
    learned = learner.weights
    weights = learner.with_prior(learned)
    shift = np.zeros(len(log_frequency))
    if corpus is not None:
        places = places_of_corpus(corpus, settings.prior_places)
        if places:
            table = candidate_log_probabilities(model, candidates, allowed, places)
            table *= np.float32(weights["filler"])
            table -= (weights["average"] * learner.log_average).astype(np.float32)
            table += (weights["frequency"] * log_frequency).astype(np.float32)
            groups, shares = _groups_of_candidates(candidates, frequencies, allowed)
            matched = match_frequencies(table, groups, shares)
            shift = matched.log_multipliers
            learner.measured["matched_frequencies"] = matched.measured()
        learner.measured["prior_places"] = len(places)
    constant = weights["frequency"] * log_frequency - weights["average"] * learner.log_average + shift
    everywhere = np.full(len(allowed), constant.min())  # words that are written as a fallback only
    everywhere[allowed] = constant
    measured = {
        "candidates": int(np.count_nonzero(allowed)),
        "weights": weights,
        "learned_weights": learned,
        **learner.measured,
    }
    scores = LogLinearScores(weights["filler"], everywhere.astype(np.float32))
    return PreparedWeighing(allowed, scores, measured, frequencies)


def _counts_of_candidates(candidates: CandidateWords, frequencies: WordFrequencies) -> np.ndarray:
    """``(W,)`` how often each stands in generic text: in any case, or as written where the filler knows capitals."""
    counts: dict[str, int] = {}
    for word, count in zip(frequencies.words, frequencies.counts.tolist(), strict=True):
        key = word if candidates.cased else fold(word)
        counts[key] = counts.get(key, 0) + count
    return np.array([counts.get(word, 0) for word in candidates.words], dtype=np.float64)


def _groups_of_candidates(
    candidates: CandidateWords, frequencies: WordFrequencies, allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``(A,)`` the groups of the allowed candidates, numbered from 0 without a gap, and ``(G,)`` their shares of all
    places: what the filler cannot write is in its group's share, or, where nothing of that can be written, in the last
    one's, so that no counted word comes out more often for it."""
    assert frequencies.groups is not None, "words were counted"
    group = dict(zip(map(fold, frequencies.words), frequencies.groups.tolist(), strict=True))
    chosen = [group[fold(word)] for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
    there, groups = np.unique(chosen, return_inverse=True)
    counted = frequencies.groups >= 0
    of_group = np.bincount(frequencies.groups[counted], weights=frequencies.counts[counted])
    shares = of_group[there]
    shares[-1] += of_group.sum() - shares.sum()
    return groups, shares / shares.sum()


class _Learner:
    """The weights of one fill, and the tables that they are learned from."""

    def __init__(
        self,
        model: "MaskedLanguageModel",
        candidates: CandidateWords,
        kept: KeptWords,
        settings: LogLinear,
        allowed: np.ndarray,
        log_frequency: np.ndarray,
    ) -> None:
        self._model, self._candidates, self._kept, self._settings = model, candidates, kept, settings
        self._allowed, self._log_frequency = allowed, log_frequency
        self._fixed: dict[str, float | None] = settings.weights.model_dump()
        self.log_average = np.zeros(len(log_frequency))
        """``(A,)``: log of the filler's mean probability over places of generic text; 0 where there is none."""
        self.measured: dict[str, Any] = {}
        self.words = [word for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
        """``A`` of them."""
        self.weights = {name: start if (one := self._fixed[name]) is None else one for name, start in _START.items()}
        """Those of filler, frequency and average."""
        self._targets = np.zeros(0, dtype=np.int64)
        self._table = np.zeros((0, len(log_frequency)), dtype=np.float32)

    def read(self, lines: Sequence[str]) -> None:
        """Mask generic text and score its places; ``CorpusError`` where there is none."""
        settings = self._settings
        text = tuning_text(
            lines,
            self._kept,
            {word: index for index, word in enumerate(self.words)},
            cased=self._candidates.cased,
            most=settings.tuning_places,
            share=settings.tuning_share,
            seed=settings.tuning_seed,
        )
        if not text.places:
            raise CorpusError(
                "the tuning text has no masked place of one word that the filler can write, so no weight can be "
                "learned; give more generic text, such as the held-out part of what the filler was trained on"
            )
        self._targets = np.array(text.targets)
        self._table = candidate_log_probabilities(self._model, self._candidates, self._allowed, text.places)
        self.log_average = np.log(np.maximum(mean_probabilities(self._table), np.finfo(np.float64).tiny))
        self.measured |= {
            "tuning_places": len(text.places),
            "tuning_masked_words": text.masked_words,
            "tuning_places_without_candidate": text.without_candidate,
        }

    def take(self, known: LearnedWeights) -> None:
        """Take what was learned, but for weights that are fixed."""
        self.weights |= {name: weight for name, weight in known.weights.items() if self._fixed[name] is None}
        self.log_average = known.log_averages(self.words)
        self.measured |= known.measured

    def learned(self) -> LearnedWeights:
        """The weights, learned over all candidates where they are not fixed."""
        start = self.weights
        table, log_frequency, log_average = self._table, self._log_frequency, self.log_average

        def features(part: slice) -> np.ndarray:
            rows = table[part]
            return np.stack([rows, *(np.broadcast_to(of, rows.shape) for of in (log_frequency, -log_average))])

        fitted = fit_weights(
            features, self._targets, table.shape[1], list(start.values()), [self._fixed[name] is None for name in start]
        )
        # Where weights are fixed the fit begins at them; the report compares with ``sample`` always.
        sample = fit_weights(features, self._targets, table.shape[1], [1.0, 0.0, 0.0], [False] * 3)
        self.measured |= {"log_likelihood_before": sample.before, "log_likelihood": fitted.after}
        weights = {name: float(weight) for name, weight in zip(start, fitted.weights, strict=True)}
        averages = dict(zip(self.words, self.log_average.tolist(), strict=True))
        return LearnedWeights(weights, averages, dict(self.measured))

    def with_prior(self, weights: dict[str, float]) -> dict[str, float]:
        """The weights to fill with, of those that fit the tuning text: the filler's average is divided out as strongly
        as the filler counts, and frequency counts in full."""
        shifted = {**weights, "frequency": 1.0, "average": weights["filler"]}
        return {name: shifted[name] if self._fixed[name] is None else weight for name, weight in weights.items()}
