"""Terms of ``log_linear`` for each word, computed before the first line is filled, once for all devices.

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
    FillerAverages,
    match_frequencies,
    mean_probabilities,
    place_of_averages,
    shipped_averages,
)
from tasks.filling.masked_lm.places import candidate_log_probabilities, places_of_corpus, tuning_text
from tasks.filling.methods.log_linear import LogLinear
from tasks.filling.opened_filler import Words
from tasks.filling.prepared_fill import Corpus
from tasks.filling.settings import SHIPPED_FILLER

if TYPE_CHECKING:
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel


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
    """The terms for a fill.

    ``wanted``: frequencies of the prior, for the words of the word counts. Raises ``CorpusError`` if the generic text
    has no usable place, and ``ParameterError`` without generic text. Raises ``ModelError`` if the filler cannot be used
    or can write no candidate.
    """
    tuned_on = corpus.files.tuning_text if settings.uses_average else None
    if settings.uses_average and not tuned_on and corpus.files.filler != SHIPPED_FILLER:
        raise ParameterError(
            f"method {settings.kind!r} needs the filler's mean probabilities on generic text; give --generic with its "
            "folder, leave --filler out, or set weights.average to 0 in params.yaml"
        )
    return prepared_weighing(
        words.opened.masked,
        words.candidates,
        words.allowed_words,
        wanted,
        settings,
        read_corpus(tuned_on) if tuned_on else None,
        corpus.masked if settings.counts_masked_words else None,
        known=shipped_averages() if settings.uses_average and not tuned_on else None,
        public=words.frequencies,
        place=partial(place_of_averages, words.opened, corpus, settings) if tuned_on else None,
    )


def prepared_weighing(
    model: "MaskedLanguageModel",
    candidates: CandidateWords,
    allowed_words: AllowedWords,
    frequencies: WordFrequencies,
    settings: LogLinear,
    lines: Sequence[str] | None,
    corpus: Sequence[str] | None,
    *,
    known: FillerAverages | None = None,
    public: WordFrequencies | None = None,
    place: Callable[[Sequence[str]], Path] | None = None,
) -> PreparedWeighing:
    """As ``prepare``, from objects. ``lines``: generic text, if needed. ``corpus``: masked lines, if words were
    counted. ``known``: averages, if there are any. ``public``: frequencies in generic text, if ``frequencies`` differ.
    ``place``: from the candidates to the file for their averages."""
    counts = _counts_of_candidates(candidates, frequencies)
    in_public = _counts_of_candidates(candidates, public) if public else counts
    allowed = allowed_words.off_list(candidates.words) & (counts > 0) & (in_public > 0)
    if not allowed.any():
        raise ModelError(
            f"filler {model.name!r} has no word to choose. It needs words of the word counts that are not on the list "
            "of never-masked words"
        )
    log_frequency = np.log(counts[allowed] / counts[allowed].sum())  # (A,)
    words = [word for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
    path = place(words) if place else None
    if path is not None and path.exists():
        known = FillerAverages.read(path)
    elif known is None and lines is not None:
        known = _averages(model, candidates, allowed, words, allowed_words, settings, lines)
        if path is not None:
            known.write(path)
    weights = settings.weights.values()
    log_average = known.of(words) if known else np.zeros(len(words))
    measured: dict[str, Any] = {"candidates": len(words), "weights": weights, **(known.measured if known else {})}
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


def _averages(
    model: "MaskedLanguageModel",
    candidates: CandidateWords,
    allowed: np.ndarray,
    words: Sequence[str],
    allowed_words: AllowedWords,
    settings: LogLinear,
    lines: Sequence[str],
) -> FillerAverages:
    """The filler's mean probabilities of ``words``, the allowed candidates, at masked places of generic ``lines``."""
    text = tuning_text(
        lines,
        allowed_words,
        set(words),
        cased=candidates.cased,
        most=settings.tuning_places,
        share=settings.tuning_share,
        seed=settings.tuning_seed,
    )
    if not text.places:
        raise CorpusError(
            "the generic text has no masked place of one word that the filler can write; give more generic text, such "
            "as the held-out part of what the filler was trained on"
        )
    table = candidate_log_probabilities(model, candidates, allowed, text.places)
    log_average = np.log(np.maximum(mean_probabilities(table), np.finfo(np.float64).tiny))
    measured = {
        "tuning_places": len(text.places),
        "tuning_masked_words": text.masked_words,
        "tuning_places_without_candidate": text.without_candidate,
    }
    return FillerAverages(dict(zip(words, log_average.tolist(), strict=True)), measured)


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
