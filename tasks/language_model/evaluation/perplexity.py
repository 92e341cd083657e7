"""The numbers of step 5: over all targets, known words, masked words, by frequency and by language
(docs/perplexity.md).

Every number is a ratio of two sums over targets, and its interval resamples sentences. Undefined numbers are ``None``.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.language_model.evaluation.bootstrap import perplexity_intervals
from tasks.language_model.evaluation.by_language import language_groups
from tasks.language_model.evaluation.reference_text import DISTANCES, UNRANKED, ReferenceText
from tasks.language_model.evaluation.sentence_scores import (
    ALL,
    KNOWN,
    MASKED,
    MASKED_KNOWN,
    REST_KNOWN,
    UNKNOWN,
    SentenceScores,
    SentenceSums,
)
from tasks.language_model.language_models import TargetScores
from tasks.language_model.settings import EvaluationSettings

_UNDEFINED = {"perplexity": None, "perplexity_ci": None}


def word_ranks(word_counts: str | Path) -> dict[str, int]:
    """Rank every normalised word by its count, from 1; ties are in code-point order."""
    from tasks.language_model.vocabulary import counts_of_words

    counts = counts_of_words(word_counts)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: rank for rank, word in enumerate(ordered, start=1)}


def sentence_scores(scores: TargetScores, text: ReferenceText, settings: EvaluationSettings) -> SentenceScores:
    """Sum each sentence's targets, all and by group, under the evaluation's rule for markers."""
    values = scores.without_markers() if settings.markers == "renormalised" else scores.log_probability
    sums = {ALL: _sums(values, text, None), KNOWN: _sums(values, text, scores.known)}
    for technique, masked in text.masked.items():
        sums[f"{MASKED}:{technique}"] = _sums(values, text, masked)
        sums[f"{MASKED_KNOWN}:{technique}"] = _sums(values, text, masked & scores.known)
    return SentenceScores(text.lines, sums)


def _sums(values: np.ndarray, text: ReferenceText, counted: np.ndarray | None) -> SentenceSums:
    return SentenceSums.of_targets(values, text.sentence, text.sentences, counted)


def measure_perplexity(
    scores: TargetScores,
    text: ReferenceText,
    settings: EvaluationSettings,
    signature: str,
    ranks: Mapping[str, int] | None = None,
) -> tuple[dict[str, Any], SentenceScores]:
    """All numbers of an evaluation, and the sentence scores that they are computed from.

    ``ranks``: the rank of each word in generic text, for the numbers by frequency. Intervals are ``[low, high]``.
    """
    sentences = sentence_scores(scores, text, settings)
    groups: dict[str, SentenceSums] = {name: sentences.of(name) for name in (ALL, KNOWN, UNKNOWN)}
    values = scores.without_markers() if settings.markers == "renormalised" else scores.log_probability
    groups["without_markers"] = _sums(scores.without_markers(), text, None)
    for technique in sentences.techniques:
        for name in (MASKED, MASKED_KNOWN, REST_KNOWN):
            groups[f"{name}:{technique}"] = sentences.of(f"{name}:{technique}")
        for distance, chosen in text.words_behind(text.masked[technique]).items():
            groups[f"{distance}:{technique}"] = _sums(values, text, chosen & scores.known)
    by_class = _frequency_groups(values, scores.known, text, settings.frequency_classes, ranks)
    by_language = language_groups(values, scores.known, text, settings.languages) if settings.languages else {}
    groups |= by_class | by_language
    measured = _measured_groups(groups, settings)
    whole = groups[ALL]
    result = {
        **_named("perplexity", measured[ALL]),
        # Sentence ends alone are no measure of words.
        **_named("perplexity_known", measured[KNOWN] if (scores.known & ~text.is_end()).any() else _UNDEFINED),
        **_named("perplexity_unknown", measured[UNKNOWN]),
        **_named("perplexity_without_markers", measured["without_markers"]),
        "bits_per_character": -whole.sum / math.log(2) / text.characters,
        "bits_per_character_ci": _bits_interval(groups[ALL], text, settings),
        "masked_words": {technique: _masked(technique, measured, text) for technique in sentences.techniques},
        "by_frequency": {name: measured[name] for name in by_class},
        "by_language": {name: measured[name] for name in by_language},
        "log_probability": whole.sum,
        "log_probability_known": groups[KNOWN].sum,
        "log_probability_unknown_mean": groups[UNKNOWN].mean,
        "oov_rate": groups[UNKNOWN].count / text.word_count,
        "words": text.word_count,
        "characters": text.characters,
        "targets": whole.count,
        "targets_known": groups[KNOWN].count,
        "targets_unknown": groups[UNKNOWN].count,
        "sentences": text.sentences,
        "empty_lines": text.empty_lines,
        "confidence": settings.confidence,
        "signature": signature,
    }
    return result, sentences


def _measured_groups(groups: Mapping[str, SentenceSums], settings: EvaluationSettings) -> dict[str, dict[str, Any]]:
    intervals = perplexity_intervals(
        list(groups.values()), settings.bootstrap_samples, settings.confidence, settings.seed
    )
    return {
        name: {"targets": sums.count, "perplexity": sums.perplexity, "perplexity_ci": interval}
        for (name, sums), interval in zip(groups.items(), intervals, strict=True)
    }


def _named(name: str, measured: Mapping[str, Any]) -> dict[str, Any]:
    return {name: measured["perplexity"], f"{name}_ci": measured["perplexity_ci"]}


def _masked(technique: str, measured: Mapping[str, Mapping[str, Any]], text: ReferenceText) -> dict[str, Any]:
    """Numbers of the words that a technique masks, of the rest, and of known words after a masked one."""
    whole, known, rest = (measured[f"{name}:{technique}"] for name in (MASKED, MASKED_KNOWN, REST_KNOWN))
    return {
        "words": whole["targets"],
        "share": whole["targets"] / text.word_count,
        "unknown_words": whole["targets"] - known["targets"],
        **_named("perplexity", whole),
        **_named("perplexity_known", known),
        "rest_targets_known": rest["targets"],
        **_named("perplexity_rest_known", rest),
        "behind": {distance: measured[f"{distance}:{technique}"] for distance in DISTANCES},
    }


def _frequency_groups(
    values: np.ndarray,
    known: np.ndarray,
    text: ReferenceText,
    limits: Sequence[int],
    ranks: Mapping[str, int] | None,
) -> dict[str, SentenceSums]:
    """Divide known words into classes that end at the rising ``limits``. The last class has all rarer words, also those
    without a count. Unknown words and sentence ends are classes of their own."""
    if ranks is None:
        return {}
    ranked = text.ranks(ranks)
    groups = {}
    for first, last in zip([1, *(limit + 1 for limit in limits)], [*limits, None], strict=True):
        name = f"rank over {first - 1}" if last is None else f"rank {first}-{last}"
        inside = (ranked >= first) & (ranked <= (UNRANKED if last is None else last))
        groups[name] = _sums(values, text, inside & known)
    groups["unknown"] = _sums(values, text, ~known)
    groups["sentence end"] = _sums(values, text, text.is_end())
    return groups


def _bits_interval(whole: SentenceSums, text: ReferenceText, settings: EvaluationSettings) -> list[float] | None:
    """Interval of bits per character: also a ratio of sums, with characters instead of targets."""
    lengths = np.fromiter((len(word) + 1 if word else 0 for word in text.words), dtype=np.int64, count=len(text.words))
    characters = np.bincount(text.sentence, weights=lengths, minlength=text.sentences).astype(np.int64)
    interval = perplexity_intervals(
        [SentenceSums(characters, whole.log_probability)],
        settings.bootstrap_samples,
        settings.confidence,
        settings.seed,
    )[0]
    return [math.log2(limit) for limit in interval] if interval else None
