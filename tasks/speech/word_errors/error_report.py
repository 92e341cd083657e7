"""Reports of a system's errors: rates with intervals, and a listing to read.

The listing shows the utterances with errors, reference above hypothesis. It has the spoken words, so it is private.

    84-121123-0001  4 errors
      REF: the quilter *** is anna not here
      HYP: the   quilt her is  ann not ****
                     S   I       S        D
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tasks.corpora.text_lines import line_writer
from tasks.language_model.evaluation.protocol import normalisation_name
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.settings import WordErrorSettings
from tasks.speech.word_errors.word_errors import (
    ALL,
    CHARACTERS,
    DELETE,
    INSERT,
    LANGUAGE,
    MASKED,
    MIXED_UNITS,
    REST,
    SUBSTITUTE,
    ErrorTable,
    align_words,
    mean_of,
)


def measure_errors(errors: ErrorTable, settings: WordErrorSettings) -> dict[str, Any]:
    """Rates are shares (0.2 is 20 %), with counts and intervals; undefined rates are ``None``."""
    every = errors.of(ALL)
    empty_references = int((every.units == 0).sum())
    return {
        **_rate(errors, settings, ALL, "wer"),
        "insertions": int(errors.of_kind[INSERT].sum()),
        "deletions": int(errors.of_kind[DELETE].sum()),
        "substitutions": int(errors.of_kind[SUBSTITUTE].sum()),
        "words": int(every.units.sum()),
        "utterances": len(errors.utterance_ids),
        "missing_hypotheses": len(errors.missing),
        "empty_references": empty_references,
        **_rate(errors, settings, CHARACTERS, "character_error_rate"),
        **(
            _rate(errors, settings, MIXED_UNITS, "mixed_error_rate")
            if MIXED_UNITS in errors.groups
            else {"mixed_error_rate": None, "mixed_error_rate_ci": None}
        ),
        "masked_words": {technique: _masked(errors, settings, technique) for technique in errors.named(MASKED)},
        "by_language": {name: _group(errors, settings, f"{LANGUAGE}:{name}") for name in errors.named(LANGUAGE)},
        # The protocol in one line; only numbers with an equal protocol are comparable.
        "signature": (
            f"wer|unit=word|norm={normalisation_name()}|alignment=fewest_edits|missing=deleted"
            f"|utterances={len(errors.utterance_ids)}|empty_references={empty_references}"
        ),
    }


def _masked(errors: ErrorTable, settings: WordErrorSettings, technique: str) -> dict[str, Any]:
    found = _group(errors, settings, f"{MASKED}:{technique}")
    return {
        **found,
        "share": found["words"] / int(errors.of(ALL).units.sum()),
        **_rate(errors, settings, f"{REST}:{technique}", "wer_rest"),
    }


def _group(errors: ErrorTable, settings: WordErrorSettings, group: str) -> dict[str, Any]:
    counts = errors.of(group)
    hits = np.zeros_like(counts.units) if counts.hits is None else counts.hits
    return {
        "words": int(counts.units.sum()),
        "recognised": int(hits.sum()),
        **mean_with_interval("recall", hits, counts.units, settings),
        **_rate(errors, settings, group, "wer"),
    }


def _rate(errors: ErrorTable, settings: WordErrorSettings, group: str, name: str) -> dict[str, Any]:
    counts = errors.of(group)
    return mean_with_interval(name, counts.errors, counts.units, settings)


def mean_with_interval(name: str, sums: np.ndarray, units: np.ndarray, settings: WordErrorSettings) -> dict[str, Any]:
    """Sums (U,) divided by units (U,), and the ends of the interval from resampled utterances; ``None`` without a
    unit."""
    if not units.sum():
        return {name: None, f"{name}_ci": None}
    mean, *ends = mean_of(sums[:, None], units, settings.bootstrap_samples, settings.confidence, settings.seed)
    return {name: mean, f"{name}_ci": None if None in ends else ends}


def shown_rate(measured: Mapping[str, Any], name: str = "wer") -> str:
    """``19.79 % [19.13, 20.41]``."""
    value, interval = measured[name], measured[f"{name}_ci"]
    if value is None:
        return "undefined"
    return f"{100 * value:.2f} %" + (f" [{100 * interval[0]:.2f}, {100 * interval[1]:.2f}]" if interval else "")


def error_warnings(measured: Mapping[str, Any]) -> list[str]:
    """Warnings for a reader of the rate, including warnings about weights tuned on dev."""
    warnings = []
    if missing := measured["missing_hypotheses"]:
        warnings.append(f"{missing} of {measured['utterances']} utterances have no hypothesis; their words are deleted")
    if empty := measured["empty_references"]:
        warnings.append(f"{empty} references hold no word after normalisation; words recognised there are insertions")
    return warnings + dev_warnings(measured.get("dev") or {})


def dev_warnings(dev: Mapping[str, Any]) -> list[str]:
    """Warnings about weights that were tuned on dev."""
    warnings = []
    if edges := dev.get("at_edge_of_grid"):
        warnings.append(f"the best of the grid is at its edge for {', '.join(edges)}; give a wider grid")
    if missing := dev.get("not_encoded"):
        warnings.append(f"{missing} development references have no encoded speech; they are left out")
    return warnings


def shown_errors(measured: Mapping[str, Any]) -> str:
    """The word error rate and its parts as a line of text."""
    speech = " of synthetic speech" if measured.get("synthetic_speech") else ""
    return (
        f"word error rate {shown_rate(measured)}: {measured['insertions']:,} insertions, {measured['deletions']:,} "
        f"deletions, {measured['substitutions']:,} substitutions in {measured['words']:,} words of "
        f"{measured['utterances']:,} utterances{speech}"
    )


def error_lines(measured: Mapping[str, Any]) -> list[str]:
    """The rates as text: one line, and one for each technique and each group by language."""
    lines = [f"{shown_errors(measured)}; characters {shown_rate(measured, 'character_error_rate')}"]
    for technique, masked in measured["masked_words"].items():
        recall = "undefined" if masked["recall"] is None else f"{masked['recall']:.1%}"
        lines.append(
            f"  {technique}: {masked['words']:,} masked words ({masked['share']:.1%}), {recall} recognised, "
            f"word error rate {shown_rate(masked)}; the rest {shown_rate(masked, 'wer_rest')}"
        )
    if measured["mixed_error_rate"] is not None:
        lines.append(f"  mixed error rate {shown_rate(measured, 'mixed_error_rate')}")
    lines += [
        f"  {name}: {group['words']:,} words, {group['recall']:.1%} recognised, word error rate {shown_rate(group)}"
        for name, group in measured["by_language"].items()
        if group["words"]
    ]
    return lines


_WIDTH = 110


def write_listing(
    path: str | Path, errors: ErrorTable, references: Mapping[str, str], hypotheses: Mapping[str, str]
) -> None:
    """Write the utterances with errors, the worst first; mode 0600."""
    import jiwer

    counts = errors.of(ALL).errors
    with line_writer(path, private=True) as stream:
        for index in np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist():
            name = errors.utterance_ids[index]
            aligned = align_words([normalise(references[name])], [normalise(hypotheses.get(name, ""))])
            _, _, *lines = jiwer.visualize_alignment(aligned, show_measures=False, line_width=_WIDTH).splitlines()
            stream.write(f"{name}  {counts[index]} errors\n")
            stream.writelines(f"  {line.rstrip()}\n" for line in lines)
