"""Terms of ``log_linear`` for each word, computed before the first line is filled, once for all devices.

Reads generic text, word counts, never-masked words, and for ``prior: counted`` the masked text, but never the sidecar.

**Mean probabilities.** The filler's prior of a word is its mean probability over masked places of generic text. Those
of the shipped filler (``weighing.json``) are of the held-out generic text of ``params.yaml``.

**Matched frequencies.** With counted words (``prior: counted``), the fills must have the counted frequencies f(g) of
single words or of groups. Consider all distributions p(w | x) whose mean over the places has these frequencies. The one
nearest to the filler's q(w | x), by the sum of KL(p || q) over the places, is q(w | x) m(g), normalised at each place
(Csiszar 1975, "I-divergence geometry", section 3). Iterative proportional fitting finds the m (Deming and Stephan
1940).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpora.words import fold
from tasks.errors import CorpusError, ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.places import candidate_log_probabilities, generic_places, places_of_corpus
from tasks.filling.methods.log_linear import LogLinear
from tasks.filling.methods.sample import draw

if TYPE_CHECKING:
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

_SHIPPED = Path(__file__).with_name("weighing.json")
_GENERIC_PLACES = 1000
"""Maximum number of masked words of generic text for the filler's mean probabilities."""
_MATCHING_STEPS = 50
_CLOSE_ENOUGH = 0.005
_LARGEST_FACTOR = 20.0
"""Maximum change of a multiplier in one step, so that the multiplier of a word unlikely at all places cannot jump."""
_ROWS = 256


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

    def choose(self, scores: np.ndarray, off_list: np.ndarray, random: np.random.Generator) -> tuple[int, bool]:
        """As ``CandidateMethod.choose``: a draw by the weighed scores."""
        return draw(np.float32(self.filler_weight) * scores + self.constant, off_list, 1.0, random)


def prepared_weighing(
    model: "MaskedLanguageModel",
    candidates: CandidateWords,
    allowed_words: AllowedWords,
    frequencies: WordFrequencies,
    settings: LogLinear,
    lines: Sequence[str] | None,
    corpus: Sequence[str] | None,
    *,
    public: WordFrequencies,
) -> PreparedWeighing:
    """The terms for a fill. ``frequencies``: of the prior, for the words of the word counts. ``lines``: generic text;
    ``None`` for the averages of the shipped filler. ``corpus``: masked lines, if words were counted. ``public``:
    frequencies in generic text.

    Raises ``CorpusError`` if the generic text has no usable place, and ``ModelError`` if the filler can write no
    candidate.
    """
    counts, in_public = (_counts_of_candidates(candidates, each) for each in (frequencies, public))
    allowed = allowed_words.off_list(candidates.words) & (counts > 0) & (in_public > 0)
    if not allowed.any():
        raise ModelError(
            f"filler {model.name!r} has no word to choose. It needs words of the word counts that are not on the list "
            "of never-masked words"
        )
    weights = settings.weights.values()
    log_frequency = np.log(counts[allowed] / counts[allowed].sum())  # (A,)
    words = [word for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
    log_average, of_places = np.zeros(len(words)), dict[str, Any]()
    if weights["average"]:
        if lines is None:
            log_average, of_places = shipped_averages(words)
        else:
            log_average, of_places = _averages(model, candidates, allowed, allowed_words, lines)
        log_average -= np.logaddexp.reduce(log_average)
    measured: dict[str, Any] = {"candidates": len(words), "weights": weights, **of_places}
    shift = np.zeros(len(log_frequency))
    if corpus is not None:
        places = places_of_corpus(corpus, settings.prior_places)
        if places:
            table = candidate_log_probabilities(model, candidates, allowed, places)
            table *= np.float32(weights["filler"])
            table -= (weights["average"] * log_average).astype(np.float32)
            table += (weights["frequency"] * log_frequency).astype(np.float32)
            groups, shares = _groups_of_words(words, frequencies)
            shift, measured["matched_frequencies"] = match_frequencies(table, groups, shares)
        measured["prior_places"] = len(places)
    constant = weights["frequency"] * log_frequency - weights["average"] * log_average + shift
    everywhere = np.full(len(allowed), constant.min())  # for words that are written only as a fallback
    everywhere[allowed] = constant
    return PreparedWeighing(allowed, weights["filler"], everywhere.astype(np.float32), measured)


def shipped_averages(words: Sequence[str]) -> tuple[np.ndarray, dict[str, Any]]:
    """``(A,)`` logs of the shipped filler's mean probabilities of the words, and figures of its places for a report.
    Unknown words have the median."""
    shipped = json.loads(_SHIPPED.read_text(encoding="utf-8"))
    usual = float(np.median(list(shipped["averages"].values())))
    return np.array([shipped["averages"].get(word, usual) for word in words]), shipped["measured"]


def _averages(
    model: "MaskedLanguageModel",
    candidates: CandidateWords,
    allowed: np.ndarray,
    allowed_words: AllowedWords,
    lines: Sequence[str],
) -> tuple[np.ndarray, dict[str, Any]]:
    """As ``shipped_averages``, at masked places of generic ``lines``."""
    known = {word for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed}
    text = generic_places(lines, allowed_words, known, cased=candidates.cased, most=_GENERIC_PLACES)
    if not text.places:
        raise CorpusError(
            "the generic text has no masked place of one word that the filler can write; give more generic text, such "
            "as the held-out part of what the filler was trained on"
        )
    table = candidate_log_probabilities(model, candidates, allowed, text.places)
    return np.log(np.maximum(mean_probabilities(table), np.finfo(np.float64).tiny)), {
        "tuning_places": len(text.places),
        "tuning_masked_words": text.masked_words,
        "tuning_places_without_candidate": text.without_candidate,
    }


def _counts_of_candidates(candidates: CandidateWords, frequencies: WordFrequencies) -> np.ndarray:
    """``(W,)`` counts of the candidates in generic text: by case if the filler knows capitals, else in any case."""
    counts: dict[str, int] = {}
    for word, count in frequencies.items():
        key = word if candidates.cased else fold(word)
        counts[key] = counts.get(key, 0) + count
    return np.array([counts.get(word, 0) for word in candidates.words], dtype=np.float64)


def _groups_of_words(words: Sequence[str], frequencies: WordFrequencies) -> tuple[np.ndarray, np.ndarray]:
    """``(A,)`` groups of the words, numbered from 0 without gaps, and ``(G,)`` their shares of all places.

    Words that the filler cannot write are in the share of their group. A group without any word that it can write is in
    the share of the last group. So no counted word is written more often than counted."""
    assert frequencies.groups is not None, "words were counted"
    group = dict(zip(map(fold, frequencies.words), frequencies.groups.tolist(), strict=True))
    there, groups = np.unique([group[fold(word)] for word in words], return_inverse=True)
    counted = frequencies.groups >= 0
    of_group = np.bincount(frequencies.groups[counted], weights=frequencies.counts[counted])
    shares = of_group[there]
    shares[-1] += of_group.sum() - shares.sum()
    return groups, shares / shares.sum()


def mean_probabilities(log_scores: np.ndarray) -> np.ndarray:
    """``(W,)`` float64: mean probabilities over ``N`` places, from log-probabilities ``(N, W)`` up to a constant in
    each row."""
    return _mean(_rows(log_scores), log_scores.shape[1], len(log_scores))


def match_frequencies(
    log_scores: np.ndarray, groups: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, dict[str, float | int]]:
    """``(W,)`` float64 logs of multipliers m for probabilities proportional to exp(score) * m, and report figures.

    The mean of the probabilities over places, summed over the words of each group, is then ``wanted``.
    ``log_scores``: ``(N, W)`` float32, at least one place; ``groups``: ``(W,)`` from 0; ``wanted``: ``(G,)`` float64,
    all above 0, sum 1. Ends when the total variation distance is at most 0.005, or after 50 steps. The
    figures have this distance without and with the multipliers: the share of all fills that would change group.
    """
    log_multipliers = np.zeros(len(groups))
    largest = np.log(_LARGEST_FACTOR)
    distances: list[float] = []
    while True:
        mean = _mean((rows + log_multipliers for rows in _rows(log_scores)), len(groups), len(log_scores))
        shares = np.bincount(groups, weights=mean, minlength=len(wanted))
        distances.append(float(np.abs(shares - wanted).sum() / 2))
        if distances[-1] <= _CLOSE_ENOUGH or len(distances) > _MATCHING_STEPS:
            break
        change = np.log(wanted) - np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        log_multipliers += np.clip(change, -largest, largest)[groups]
    return log_multipliers, {
        "groups": len(wanted),
        "distance_before": distances[0],
        "distance": distances[-1],
        "steps": len(distances) - 1,
    }


def _rows(log_scores: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(log_scores), _ROWS):
        yield log_scores[first : first + _ROWS].astype(np.float64)


def _mean(parts: Iterable[np.ndarray], width: int, number: int) -> np.ndarray:
    total = np.zeros(width)
    for part in parts:
        chances = np.exp(part - part.max(axis=1, keepdims=True))
        total += (chances / chances.sum(axis=1, keepdims=True)).sum(axis=0)
    return total / number
