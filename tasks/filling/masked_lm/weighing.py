"""Weights and prior of ``log_linear``, learned before the first line is filled, once for all devices.

Reads generic text, word counts, never-masked words, and for ``prior: counted`` the masked text, but never the sidecar.
The counts of ``prior: counted`` already have their noise here.
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
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.estimation import (
    LearnedWeights,
    fit_weights,
    match_frequencies,
    mean_probabilities,
    place_of_weights,
    shipped_weights,
)
from tasks.filling.masked_lm.places import (
    TuningText,
    candidate_log_probabilities,
    places_of_corpus,
    tuning_text,
)
from tasks.filling.methods.log_linear import LogLinear
from tasks.filling.opened_filler import Words
from tasks.filling.prepared_fill import Corpus
from tasks.filling.settings import SHIPPED_FILLER

if TYPE_CHECKING:
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

_START = {"filler": 1.0, "frequency": 0.0, "average": 0.0}
"""Weights of ``sample``."""


@dataclass(frozen=True)
class PreparedWeighing:
    """Terms of the score of a word, and figures for a report."""

    allowed: np.ndarray
    """``(W,)`` booleans: the candidates among the words that the filler can write."""
    filler_weight: float
    """Weight a of the filler."""
    constant: np.ndarray
    """``(W,)`` float32, finite: the score terms without context, for all words that the filler can write."""
    measured: dict[str, Any]
    frequencies: WordFrequencies
    """Frequencies of the prior, also of words that the filler cannot write."""


def prepare(words: Words, corpus: Corpus, settings: LogLinear, wanted: WordFrequencies) -> PreparedWeighing:
    """Learn weights and prior for a fill.

    ``wanted``: frequencies of the prior, for the words of the word counts. Weights are learned with the word counts
    themselves, so stored weights reveal nothing about a private text. Raises ``CorpusError`` if no tuning place is
    found, and ``ParameterError`` if there is no text to learn from. Raises ``ModelError`` if the filler cannot be used
    or can write no candidate.
    """
    tuned_on = corpus.files.tuning_text if settings.learns_weights else None
    if settings.learns_weights and not tuned_on and corpus.files.filler != SHIPPED_FILLER:
        raise ParameterError(
            f"method {settings.kind!r} learns its weights from generic text; give --generic with its folder, leave "
            "--filler out, or fix all its weights in params.yaml, average as 0"
        )
    return prepared_weighing(
        words.opened.masked,
        words.candidates,
        words.kept,
        wanted,
        settings,
        read_corpus(tuned_on) if tuned_on else None,
        corpus.masked if settings.counts_masked_words else None,
        known=shipped_weights() if settings.learns_weights and not tuned_on else None,
        learned_by=words.frequencies,
        place=partial(place_of_weights, words.opened, corpus, settings) if tuned_on else None,
    )


def prepared_weighing(
    model: "MaskedLanguageModel",
    candidates: CandidateWords,
    kept: AllowedWords,
    frequencies: WordFrequencies,
    settings: LogLinear,
    lines: Sequence[str] | None,
    corpus: Sequence[str] | None,
    *,
    known: LearnedWeights | None = None,
    learned_by: WordFrequencies | None = None,
    place: Callable[[Sequence[str], np.ndarray], Path] | None = None,
) -> PreparedWeighing:
    """As ``prepare``, from objects. ``lines``: generic text, if needed. ``corpus``: masked lines, if words were
    counted. ``known``: weights learned before. ``learned_by``: frequencies of the same words in generic text, if
    ``frequencies`` differ. ``place``: from the candidates and their counts to the file for the weights."""
    counts = _counts_of_candidates(candidates, frequencies)
    public = _counts_of_candidates(candidates, learned_by) if learned_by else counts
    allowed = kept.off_list(candidates.words) & (counts > 0) & (public > 0)
    if not allowed.any():
        raise ModelError(
            f"filler {model.name!r} has no word to choose. It needs words of the word counts that are not on the list "
            "of never-masked words"
        )
    log_frequency = np.log(counts[allowed] / counts[allowed].sum())  # (A,)
    words = [word for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
    path = place(words, public[allowed]) if place else None
    if path is not None and path.exists():
        known = LearnedWeights.read(path)
    elif known is None and lines is not None:
        text = tuning_text(
            lines,
            kept,
            {word: index for index, word in enumerate(words)},
            cased=candidates.cased,
            most=settings.tuning_places,
            share=settings.tuning_share,
            seed=settings.tuning_seed,
        )
        if not text.places:
            raise CorpusError(
                "the tuning text has no masked place of one word that the filler can write, so no weight can be "
                "learned; give more generic text, such as the held-out part of what the filler was trained on"
            )
        table = candidate_log_probabilities(model, candidates, allowed, text.places)
        known = _learned(text, table, words, np.log(public[allowed] / public[allowed].sum()), settings)
        if path is not None:
            known.write(path)
    fixed = settings.weights.model_dump(exclude_none=True)
    learned = {**_START, **(known.weights if known else {}), **fixed}
    # For filling, the average gets the weight of the filler, and the frequency 1, unless they are fixed.
    weights = {"filler": learned["filler"], "frequency": 1.0, "average": learned["filler"], **fixed}
    log_average = known.log_averages(words) if known else np.zeros(len(words))
    measured: dict[str, Any] = {"candidates": len(words), "weights": weights, "learned_weights": learned}
    measured |= known.measured if known else {}
    shift = np.zeros(len(log_frequency))
    if corpus is not None:
        places = places_of_corpus(corpus, settings.prior_places)
        if places:
            table = candidate_log_probabilities(model, candidates, allowed, places)
            table *= np.float32(weights["filler"])
            table -= (weights["average"] * log_average).astype(np.float32)
            table += (weights["frequency"] * log_frequency).astype(np.float32)
            groups, shares = _groups_of_candidates(candidates, frequencies, allowed)
            shift, measured["matched_frequencies"] = match_frequencies(table, groups, shares)
        measured["prior_places"] = len(places)
    constant = weights["frequency"] * log_frequency - weights["average"] * log_average + shift
    everywhere = np.full(len(allowed), constant.min())  # for words that are written only as a fallback
    everywhere[allowed] = constant
    return PreparedWeighing(allowed, weights["filler"], everywhere.astype(np.float32), measured, frequencies)


def _counts_of_candidates(candidates: CandidateWords, frequencies: WordFrequencies) -> np.ndarray:
    """``(W,)`` counts of the candidates in generic text: by case if the filler knows capitals, else in any case."""
    counts: dict[str, int] = {}
    for word, count in zip(frequencies.words, frequencies.counts.tolist(), strict=True):
        key = word if candidates.cased else fold(word)
        counts[key] = counts.get(key, 0) + count
    return np.array([counts.get(word, 0) for word in candidates.words], dtype=np.float64)


def _groups_of_candidates(
    candidates: CandidateWords, frequencies: WordFrequencies, allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``(A,)`` groups of the allowed candidates, numbered from 0 without gaps, and ``(G,)`` their shares of all places.

    Words that the filler cannot write are in the share of their group. A group without any word that it can write is in
    the share of the last group. So no counted word is written more often than counted."""
    assert frequencies.groups is not None, "words were counted"
    group = dict(zip(map(fold, frequencies.words), frequencies.groups.tolist(), strict=True))
    chosen = [group[fold(word)] for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
    there, groups = np.unique(chosen, return_inverse=True)
    counted = frequencies.groups >= 0
    of_group = np.bincount(frequencies.groups[counted], weights=frequencies.counts[counted])
    shares = of_group[there]
    shares[-1] += of_group.sum() - shares.sum()
    return groups, shares / shares.sum()


def _learned(
    text: TuningText, table: np.ndarray, words: Sequence[str], log_frequency: np.ndarray, settings: LogLinear
) -> LearnedWeights:
    """All weights; weights that are not fixed are learned over all candidates.

    ``table``: ``(N, A)`` log-probabilities of the candidates ``words`` at the places of ``text``.
    """
    targets, width = np.array(text.targets), len(words)
    log_average = np.log(np.maximum(mean_probabilities(table), np.finfo(np.float64).tiny))
    fixed = settings.weights.model_dump(exclude_none=True)

    def features(part: slice) -> np.ndarray:
        rows = table[part]
        return np.stack([rows, *(np.broadcast_to(of, rows.shape) for of in (log_frequency, -log_average))])

    start = {**_START, **fixed}
    fitted = fit_weights(features, targets, width, list(start.values()), [name not in fixed for name in start])
    # The fit begins at the fixed weights, but the report always compares with ``sample``.
    sample = fit_weights(features, targets, width, list(_START.values()), [False] * len(_START))
    measured = {
        "tuning_places": len(text.places),
        "tuning_masked_words": text.masked_words,
        "tuning_places_without_candidate": text.without_candidate,
        "log_likelihood_before": sample.before,
        "log_likelihood": fitted.after,
    }
    averages = dict(zip(words, log_average.tolist(), strict=True))
    return LearnedWeights(dict(zip(start, map(float, fitted.weights), strict=True)), averages, measured)
