"""Differences between cells with their intervals: the evidence for the findings and for the choice of a cell.

Two cells are compared on the same test sentences, seed by seed, by the ratio of their perplexities. The paired
bootstrap over sentences and seeds is that of the summary's ratios (``bootstrap.paired_ratios``).
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tasks.language_model.settings import EvaluationSettings
from tasks.records.cells import score_file
from tasks.results.measures import measure
from tasks.results.summary.estimate import mean, over_seeds
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.titles import cell_label, group_of

Row = Mapping[str, Any]
Side = Literal["below", "above"]
Outcome = Literal["for", "against", "open"]
_Ratio = tuple[float, float | None, float | None]
"""A ratio and its interval."""
PERPLEXITIES = {True: "perplexity_known", False: "perplexity"}
"""Columns of perplexities; True: over in-vocabulary words only."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A cell without its seed."""

    dataset: str
    technique: str | None
    method: str
    filler: str | None

    @property
    def label(self) -> str:
        """``Top-K fill with MiniLM``."""
        return cell_label(self.method, self.filler)

    @property
    def is_filled(self) -> bool:
        """Whether its language model was trained on a filled corpus."""
        return group_of(self.technique, self.method, self.filler) in ("fill", "control")


@dataclass(frozen=True, slots=True)
class Paired:
    """The ratio of one condition's number to another's, paired by seed and test sentence, with its interval."""

    first: Condition
    second: Condition
    ratio: float | None = None
    """Geometric mean over seeds; ``None`` if the two cannot be compared."""
    low: float | None = None
    high: float | None = None
    seeds: int = 0
    expected: Side = "below"
    """Side of ``limit`` on which a claim expects the ratio."""
    limit: float = 1.0
    reason: str = ""
    """Reason why the two cannot be compared, as the rest of a sentence."""

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Data set, technique (both, if they differ), and labels."""
        techniques = dict.fromkeys(each.technique for each in (self.first, self.second) if each.technique is not None)
        return self.first.dataset, " / ".join(techniques), self.first.label, self.second.label

    @property
    def outcome(self) -> Outcome:
        """The interval's outcome for the claim; ``open`` if it includes the limit, or there is none."""
        if self.low is None or self.high is None or self.low <= self.limit <= self.high:
            return "open"
        return "for" if (self.high < self.limit) == (self.expected == "below") else "against"


class Experiment:
    """The rows of a summary, by condition and seed, and the sentence scores from which they were measured."""

    def __init__(self, rows: Sequence[Row], scores: str | Path | None, evaluation: EvaluationSettings) -> None:
        """``scores``: the folder of scores from evaluation; without it ratios of perplexities have no interval."""
        self._scores = Path(scores) if scores is not None and Path(scores).is_dir() else None
        self._resampling = evaluation.bootstrap_samples, evaluation.confidence, evaluation.seed
        self._ratio = cache(self._paired_ratio)
        self.rows: dict[Condition, list[Row]] = {}
        """The rows of each condition, one a seed."""
        for row in rows:
            condition = Condition(row["dataset"], row["technique"], row["method"], row["filler"])
            self.rows.setdefault(condition, []).append(row)

    def pretrained(self, condition: Condition) -> Condition | None:
        """The same fill by the pretrained filler of this one's tuning; ``None`` if the filler was not tuned."""
        base = self.rows[condition][0]["filler_base"]
        return replace(condition, filler=base) if base else None

    def number(self, condition: Condition, field: str) -> float | None:
        """The mean of a column over the seeds: the geometric mean for logarithmic measures.

        ``None`` if a seed has no number.
        """
        values = [row.get(field) for row in self.rows[condition]]
        found = [value for value in values if value is not None]
        if len(found) < len(values):
            return None
        return (statistics.geometric_mean if measure(field).logarithmic else statistics.fmean)(found)

    def ranked(self, conditions: Sequence[Condition], field: str) -> list[Condition]:
        """The conditions with a number by their mean of a column, the lowest first."""
        numbers = [(number, each) for each in conditions if (number := self.number(each, field)) is not None]
        return [each for _, each in sorted(numbers, key=lambda pair: pair[0])]

    def compare(
        self,
        first: Condition,
        second: Condition,
        expected: Side = "below",
        limit: float = 1.0,
        *,
        field: str = "perplexity",
    ) -> Paired:
        """The ratio of two conditions' perplexities or word error rates (``field``), seed by seed.

        A second condition without a seed is the same for each.
        """
        for condition in (first, second):
            if condition not in self.rows:
                return Paired(first, second, reason=f"{condition.label} is not in the summary")
        mine, others = self.rows[first], self.rows[second]
        if any(row.get(field) is None for row in (*mine, *others)):
            absent = "word error rate" if field == "wer" else "perplexity"
            return Paired(first, second, reason=f"one of them has no {absent}")
        by_seed = {row["seed"]: row for row in others}
        pairs = [(row, other) for row in mine if (other := by_seed.get(row["seed"]) or by_seed.get(None))]
        if len(pairs) < len(mine):
            return Paired(first, second, reason="their seeds differ")
        if field == "wer":
            found = _ratio_of_rates(mine, others, second.method)
        elif any(row.get("signature") != other.get("signature") for row, other in pairs):
            return Paired(first, second, reason="their perplexities follow different protocols")
        elif self._scores is None:
            found = statistics.geometric_mean([row[field] / other[field] for row, other in pairs]), None, None
        else:
            cells = tuple((summarised_cell(row), summarised_cell(other)) for row, other in pairs)
            files = tuple((self._scores / score_file(cell), self._scores / score_file(other)) for cell, other in cells)
            found = self._ratio(files, "known" if field == PERPLEXITIES[True] else "all")
        return Paired(first, second, *found, len(pairs), expected, limit)

    def _paired_ratio(self, files: Sequence[tuple[Path, Path]], group: str) -> _Ratio:
        from tasks.language_model.evaluation.bootstrap import paired_ratios

        return paired_ratios(files, [group], *self._resampling)[0]


def _ratio_of_rates(rows: Sequence[Row], references: Sequence[Row], method: str) -> _Ratio:
    """The ratio of two mean word error rates, with the interval of their paired difference.

    Over several seeds the summary has an interval over utterances and seeds, or none: their range is no interval.
    """
    mine, others = mean(rows, "wer"), mean(references, "wer")
    column = f"wer_difference_to_{method}"
    together = rows[0] if len(rows) == 1 else over_seeds(rows, column) or {}
    interval = together.get(f"{column}_ci")
    if mine is None or not others:
        return math.inf, None, None
    if not interval:
        return mine / others, None, None
    return mine / others, 1 + interval[0] / others, 1 + interval[1] / others
