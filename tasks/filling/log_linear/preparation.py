"""What ``log_linear`` learns before the first line is filled, once for all devices.

Reads generic text, word counts, kept words, and for ``prior_steps`` and ``prior: counted`` the masked text; never the
sidecar. What ``prior: counted`` learns from that has its noise already when it comes here.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.corpora.text_lines import read_corpus, read_lines
from tasks.corpora.words import fold
from tasks.errors import CorpusError, ModelError
from tasks.filling.choices.log_linear import LogLinearScores
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.kept_words import KeptWords
from tasks.filling.log_linear.candidate_scores import candidate_log_probabilities, count_slots, places_of_corpus
from tasks.filling.log_linear.feature_weights import fit_weights
from tasks.filling.log_linear.options import counts_masked_words, needs_tuning_text, refuse_causal
from tasks.filling.log_linear.tuning_places import tuning_text
from tasks.filling.log_linear.word_prior import estimate_prior, match_frequencies, mean_probabilities
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.settings import LogLinear

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


def prepare(
    arguments: argparse.Namespace, settings: LogLinear, threads: int, wanted: WordFrequencies | None = None
) -> PreparedWeighing:
    """Learn weights and prior for a fill; ``arguments`` are those of ``palimpsest fill``.

    ``wanted``: how frequent words are in the private domain, the same words as in the word counts; the word counts
    themselves if ``None``.

    Raises ``ParameterError`` where the filler is a causal language model, ``CorpusError`` where no tuning place is
    found, and ``ModelError`` where the filler cannot be used, or can write no candidate.
    """
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads)
    refuse_causal(settings, arguments.filler)
    kept = KeptWords.read(arguments.kept_words)
    frequencies = WordFrequencies.read(arguments.word_counts, letters=counts_masked_words(settings))
    model = MaskedLanguageModel.load(arguments.filler)
    candidates = candidate_words(model, arguments.filler, frequencies)
    lines = read_corpus(arguments.tuning_text) if needs_tuning_text(settings) else None
    corpus = None
    if settings.prior_steps or counts_masked_words(settings):
        number = count_slots(read_lines(arguments.input), merge_markers=settings.merge_markers)
        corpus = (number, read_lines(arguments.input))
    return prepared_weighing(model, candidates, kept, wanted or frequencies, settings, lines, corpus)


def candidate_words(model: MaskedLanguageModel, name: str, frequencies: WordFrequencies) -> CandidateWords:
    """The words that the filler can write, the same as when it fills."""
    from tasks.filling.masked_lm.candidate_words import candidate_words as find

    return find(model.tokenizer, name=name, known_words=frequencies.folded())


def prepared_weighing(
    model: Any,
    candidates: CandidateWords,
    kept: KeptWords,
    frequencies: WordFrequencies,
    settings: LogLinear,
    lines: Sequence[str] | None,
    corpus: tuple[int, Iterable[str]] | None,
) -> PreparedWeighing:
    """The same from objects: ``lines`` of generic text, if needed; ``corpus``: number of slots and masked lines, if
    the prior is to be adjusted."""
    counts = _counts_of_candidates(candidates, frequencies)
    allowed = kept.off_list(candidates.words) & (counts > 0)
    if not allowed.any():
        raise ModelError(
            f"filler {model.name!r} can write no word that is off the list of kept words and in the word counts: "
            "nothing to choose"
        )
    log_frequency = np.log(counts[allowed] / counts[allowed].sum())  # (A,)
    learner = _Learner(model, candidates, kept, settings, allowed, log_frequency)
    if lines is not None:
        learner.read(lines)
    learned = learner.learned_weights()
    weights = learner.with_prior(learned)
    shift = np.zeros(len(log_frequency))
    if corpus is not None:
        number, masked = corpus
        places = places_of_corpus(masked, number, settings.prior_places, merge_markers=settings.merge_markers)
        if places:
            table = candidate_log_probabilities(model, candidates, allowed, places)
            table *= np.float32(weights["filler"])
            table -= (weights["average"] * learner.log_average).astype(np.float32)
            groups = _groups_of_candidates(candidates, frequencies, allowed)
            if groups is None:
                start = np.exp(weights["frequency"] * log_frequency)
                start /= start.sum()
                shift = np.log(estimate_prior(table, start, settings.prior_steps, settings.prior_smoothing) / start)
            else:
                table += (weights["frequency"] * log_frequency).astype(np.float32)
                wanted = np.bincount(groups, weights=np.exp(log_frequency))
                matched = match_frequencies(table, groups, wanted)
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
) -> np.ndarray | None:
    """``(A,)`` the groups of the allowed candidates, numbered from 0 without a gap; ``None`` where nothing is known."""
    if frequencies.groups is None:
        return None
    group = dict(zip(map(fold, frequencies.words), frequencies.groups.tolist(), strict=True))
    chosen = [group[fold(word)] for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
    return np.unique(chosen, return_inverse=True)[1]


class _Learner:
    """The weights of one fill, and the tables that they are learned from."""

    def __init__(
        self,
        model: Any,
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
        self._targets = np.zeros(0, dtype=np.int64)
        self._table = np.zeros((0, len(log_frequency)), dtype=np.float32)

    def read(self, lines: Sequence[str]) -> None:
        """Mask generic text and score its places; ``CorpusError`` where there is none."""
        settings = self._settings
        pairs = zip(self._candidates.words, self._allowed, strict=True)
        words = [word for word, is_allowed in pairs if is_allowed]
        text = tuning_text(
            lines,
            self._kept,
            {word: index for index, word in enumerate(words)},
            cased=self._candidates.cased,
            most=settings.tuning_places,
            share=settings.tuning_share,
            seed=settings.tuning_seed,
            sees_fills=settings.order != "all_at_once",
            merge_markers=settings.merge_markers,
        )
        if not text.places:
            raise CorpusError(
                "the tuning text has no masked place of one word that the filler can write, so no weight can be "
                "learned; give more generic text, such as the held-out part of what the filler was trained on"
            )
        self._targets = np.array([place.target for place in text.places])
        self._table = candidate_log_probabilities(
            self._model, self._candidates, self._allowed, [place.place for place in text.places]
        )
        self.log_average = np.log(np.maximum(mean_probabilities(self._table), np.finfo(np.float64).tiny))
        self.measured |= {
            "tuning_places": len(text.places),
            "tuning_masked_words": text.masked_words,
            "tuning_places_without_candidate": text.without_candidate,
        }

    def learned_weights(self) -> dict[str, float]:
        """Those of filler, frequency and average; learned over all candidates where they are not fixed."""
        start = {name: start if (fixed := self._fixed[name]) is None else fixed for name, start in _START.items()}
        if not len(self._targets):
            return start
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
        return {name: float(weight) for name, weight in zip(start, fitted.weights, strict=True)}

    def with_prior(self, weights: dict[str, float]) -> dict[str, float]:
        """The weights to fill with, of those that fit the tuning text: where the prior is that of the word counts, the
        filler's average is divided out as strongly as the filler counts, and frequency counts in full."""
        if self._settings.prior == "tuning_text":
            return weights
        shifted = {**weights, "frequency": 1.0, "average": weights["filler"]}
        return {name: shifted[name] if self._fixed[name] is None else weight for name, weight in weights.items()}
