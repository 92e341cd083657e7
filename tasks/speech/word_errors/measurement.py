"""The numbers of a system's word errors, as reports give them (docs/word_error_rate.md)."""

from collections.abc import Mapping
from typing import Any

from tasks.speech.rescoring.settings import WordErrorSettings
from tasks.speech.word_errors.error_counts_file import signature
from tasks.speech.word_errors.word_errors import (
    ALL,
    CHARACTERS,
    MASKED,
    REST,
    UtteranceErrors,
    word_error_interval,
    word_error_rate,
)


def measure_errors(errors: UtteranceErrors, settings: WordErrorSettings) -> dict[str, Any]:
    """Rates are shares (0.2 is 20 %), with counts and intervals; what is undefined is ``None``."""
    return {
        **_rate(errors, settings, ALL, "wer"),
        "insertions": int(errors.insertions.sum()),
        "deletions": int(errors.deletions.sum()),
        "substitutions": int(errors.substitutions.sum()),
        "words": int(errors.words.sum()),
        "utterances": len(errors.utterance_ids),
        "wrong_utterances": int((errors.errors > 0).sum()),
        "missing_hypotheses": int(errors.missing.sum()),
        "empty_references": errors.empty_references,
        **_rate(errors, settings, CHARACTERS, "character_error_rate"),
        "characters": int(errors.characters.sum()),
        "masked_words": {technique: _masked(errors, settings, technique) for technique in errors.techniques},
        "signature": signature(errors),
    }


def _masked(errors: UtteranceErrors, settings: WordErrorSettings, technique: str) -> dict[str, Any]:
    counts = errors.of(f"{MASKED}:{technique}")
    words, hits = int(counts.units.sum()), int(counts.hits.sum()) if counts.hits is not None else 0
    return {
        "words": words,
        "share": words / int(errors.words.sum()),
        "recognised": hits,
        "recall": hits / words if words else None,
        **_rate(errors, settings, f"{MASKED}:{technique}", "wer"),
        **_rate(errors, settings, f"{REST}:{technique}", "wer_rest"),
    }


def _rate(errors: UtteranceErrors, settings: WordErrorSettings, group: str, name: str) -> dict[str, Any]:
    interval = word_error_interval(errors, settings.bootstrap_samples, settings.confidence, settings.seed, group)
    return {name: word_error_rate(errors, group), f"{name}_ci": interval}


def shown_rate(measured: Mapping[str, Any], name: str = "wer") -> str:
    """``19.79 % [19.13, 20.41]``."""
    value, interval = measured[name], measured[f"{name}_ci"]
    if value is None:
        return "undefined"
    return f"{100 * value:.2f} %" + (f" [{100 * interval[0]:.2f}, {100 * interval[1]:.2f}]" if interval else "")


def error_warnings(measured: Mapping[str, Any]) -> list[str]:
    """What a reader of the rate must know."""
    warnings = []
    if missing := measured["missing_hypotheses"]:
        warnings.append(f"{missing} of {measured['utterances']} utterances have no hypothesis; their words are deleted")
    if empty := measured["empty_references"]:
        warnings.append(f"{empty} references hold no word after normalisation; their utterances are left out")
    return warnings


def error_lines(measured: Mapping[str, Any]) -> list[str]:
    """The rates for a person: one line, and one for each technique."""
    lines = [
        f"word error rate {shown_rate(measured)}: {measured['insertions']:,} insertions, {measured['deletions']:,} "
        f"deletions, {measured['substitutions']:,} substitutions in {measured['words']:,} words of "
        f"{measured['utterances']:,} utterances; characters {shown_rate(measured, 'character_error_rate')}"
    ]
    for technique, masked in measured["masked_words"].items():
        recall = "undefined" if masked["recall"] is None else f"{masked['recall']:.1%}"
        lines.append(
            f"  {technique}: {masked['words']:,} masked words ({masked['share']:.1%}), {recall} recognised, "
            f"word error rate {shown_rate(masked)}; the rest {shown_rate(masked, 'wer_rest')}"
        )
    return lines
