"""What the app can show of a run: names, units, and what a number is held against."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.results.summary.estimate import Estimate, direction, estimate
from tasks.results.summary.summary_table import ABOVE, BELOW, OTHER_PROTOCOL, follows_protocol, mark, number_text


@dataclass(frozen=True)
class Measure:
    """One column of the results."""

    name: str
    """As in the summary and in MLflow."""
    title: str
    per_cent: bool = False
    """A share, shown times 100."""
    digits: int = 1
    reference: str | None = None
    """Column whose interval decides on the mark; that of the perplexities against Baseline1 has no name of its own."""
    neutral: float = 1.0
    """The reference's value where there is no difference."""
    meaning: str = ""
    """What the marks say."""
    logarithmic: bool = False

    def estimate(self, rows: Sequence[Mapping[str, Any]]) -> Estimate | None:
        """The number of a condition in the unit that is shown."""
        found = estimate(rows, self.name) if rows else None
        return found.times(100) if found is not None and self.per_cent else found

    def mark(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """``▼`` or ``▲`` where the interval excludes the neutral value, ``‡`` of another protocol, else nothing."""
        if not rows or self.reference is None:
            return "" if not rows or follows_protocol(rows) else OTHER_PROTOCOL
        if self.name.startswith("perplexity"):
            return mark(rows, self.name)
        if not follows_protocol(rows):
            return OTHER_PROTOCOL
        return {-1: BELOW, 1: ABOVE, 0: ""}[direction(rows, self.reference, self.neutral)]

    def text(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """``445.1 [430, 460] ▼``."""
        return f"{number_text(self.estimate(rows), self.digits)} {self.mark(rows)}".rstrip()


_BASELINE = f"{BELOW} below, {ABOVE} above Baseline1 of the same technique: the interval of the paired ratio excludes 1"
_SPEECH = f"{BELOW} below, {ABOVE} above the pretrained model: the interval of the paired difference excludes 0"
_ONE = f"{BELOW} below, {ABOVE} above 1: the interval excludes it"
_ZERO = f"{BELOW} below, {ABOVE} above 0: the interval excludes it"


def _perplexity(name: str, title: str) -> Measure:
    reference = "ratio_to_baseline1" + name.removeprefix("perplexity")
    return Measure(name, title, reference=reference, meaning=_BASELINE, logarithmic=True)


def _ratio(name: str, title: str) -> Measure:
    return Measure(name, title, digits=3, reference=name, meaning=_ONE)


def _share(name: str, title: str) -> Measure:
    return Measure(name, title, per_cent=True, digits=2)


def _difference(name: str, title: str) -> Measure:
    return Measure(name, title, per_cent=True, digits=2, reference=name, neutral=0.0, meaning=_ZERO)


MEASURES = {
    measure.name: measure
    for measure in (
        _perplexity("perplexity", "Perplexity, all words"),
        _perplexity("perplexity_known", "Perplexity, words of the vocabulary"),
        _perplexity("perplexity_masked_known", "Perplexity, words that the technique would mask"),
        _perplexity("perplexity_rest_known", "Perplexity, all that the technique leaves"),
        Measure("perplexity_without_markers", "Perplexity without the markers' probability", logarithmic=True),
        Measure("bits_per_character", "Bits per character", digits=3),
        _ratio("ratio_to_oracle", "Times Oracle's perplexity, all words"),
        _ratio("ratio_to_oracle_known", "Times Oracle's perplexity, words of the vocabulary"),
        _ratio("ratio_to_baseline1", "Times Baseline1's perplexity, all words"),
        _ratio("ratio_to_baseline1_known", "Times Baseline1's perplexity, words of the vocabulary"),
        Measure(
            "gap_closed_known",
            "Gap between Baseline1 and Oracle that the fills close, %",
            per_cent=True,
            reference="gap_closed_known",
            neutral=0.0,
            meaning=_ZERO,
        ),
        Measure(
            "wer",
            "Word error rate, %",
            per_cent=True,
            digits=2,
            reference="wer_difference_to_pretrained",
            neutral=0.0,
            meaning=_SPEECH,
        ),
        _share("wer_masked", "Word error rate on words that the technique would mask, %"),
        _share("character_error_rate", "Character error rate, %"),
        _difference("wer_difference_to_no_language_model", "Word error rate less the bare recogniser's, points"),
        _difference("wer_difference_to_pretrained", "Word error rate less the pretrained model's, points"),
        _difference("wer_difference_to_oracle", "Word error rate less Oracle's, points"),
        _share("masked_fraction", "Words of the training text that were masked, %"),
        _share("restoration_rate", "Masked words that the fills happen to write, %"),
        _share("restoration_by_frequency", "Masked words that a guess by frequency hits, %"),
        Measure("distinct_fills", "Different fills", digits=0),
    )
}
"""Measures by name, in the order in which they are offered."""


def measured(rows: Iterable[Mapping[str, Any]]) -> list[Measure]:
    """Measures of which a row has a number."""
    rows = list(rows)
    return [measure for measure in MEASURES.values() if any(row.get(measure.name) is not None for row in rows)]
