"""Differences between cells with their intervals: the evidence for the findings.

Two cells are compared on the same test sentences, seed by seed, by the ratio of their perplexities and its paired
bootstrap. A bootstrap over sentences does not cover the variation over seeds. So with ``n`` seeds the half width of the
mean log ratio's interval is the root of the sum of two squares. One is Student's ``t`` (``n - 1`` degrees of freedom)
times the standard error over the seeds. The other is the mean half width of the seeds' bootstrap intervals; it is not
divided by ``sqrt(n)``, since all seeds are tested on the same sentences.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from tasks.errors import CorpusError
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
_SAME = 1e-6
"""Scores are rounded to a millionth of a nat a sentence, so that a perplexity from them differs by less than this."""


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
        """``scores``: the folder of scores from evaluation. Without it only the intervals of the rows exist, which
        compare with Oracle and Baseline1."""
        self._scores = Path(scores) if scores is not None and Path(scores).is_dir() else None
        self._confidence = evaluation.confidence
        self._checked = cache(_refuse_other_scores)
        self._compared = cache(partial(_paired_ratio, evaluation))
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

        A second condition without a seed is the same for each. Raises ``CorpusError`` if the scores are not those of
        the rows.
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
        else:
            found = combined([self._of_seed(*pair, second.method, field) for pair in pairs], self._confidence)
        return Paired(first, second, *found, len(pairs), expected, limit)

    def _of_seed(self, mine: Row, other: Row, reference: str, field: str) -> _Ratio:
        """The ratio from the scores of sentences; without them from the rows' own numbers and intervals."""
        if self._scores is not None:
            files = [self._scores / score_file(summarised_cell(row)) for row in (mine, other)]
            for path, row in zip(files, (mine, other), strict=True):
                self._checked(path, row["perplexity"], row["signature"])
            return self._compared(*files, field == PERPLEXITIES[True])
        low, high = mine.get(f"{field.replace('perplexity', f'ratio_to_{reference}')}_ci") or (None, None)
        return mine[field] / other[field], low, high


def _paired_ratio(evaluation: EvaluationSettings, first: Path, second: Path, known: bool) -> _Ratio:
    from tasks.language_model.evaluation.bootstrap import paired_ratios

    resampling = evaluation.bootstrap_samples, evaluation.confidence, evaluation.seed
    return paired_ratios([(first, second)], ["known" if known else "all"], *resampling)[0]


def _refuse_other_scores(path: Path, perplexity: float, signature: str | None) -> None:
    """Refuse scores of another model, so that their perplexity is not the row's."""
    from tasks.language_model.evaluation.sentence_scores import read_scores

    scores, of_scores = read_scores(path)
    found = scores.of("all").perplexity
    if found is None or not math.isclose(found, perplexity, rel_tol=_SAME) or of_scores != signature:
        raise CorpusError(
            f"the scores in {str(path)!r} give a perplexity of {found} ({of_scores}), and the summary says "
            f"{perplexity} ({signature}). They are not of the same evaluation. Run 'palimpsest summarise' again"
        )


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


def combined(ratios: Sequence[_Ratio], confidence: float) -> _Ratio:
    """Ratio and interval over seeds, by the rule above; an item is a seed's ratio and its interval."""
    if len(ratios) == 1:
        return ratios[0]
    logs = [math.log(ratio) for ratio, _, _ in ratios]
    mean = statistics.fmean(logs)
    if any(low is None or high is None for _, low, high in ratios):
        return math.exp(mean), None, None
    below = statistics.fmean(centre - math.log(low) for centre, (_, low, _) in zip(logs, ratios, strict=True) if low)
    above = statistics.fmean(math.log(high) - centre for centre, (_, _, high) in zip(logs, ratios, strict=True) if high)
    from scipy.special import stdtrit

    student = float(stdtrit(len(logs) - 1, (1 + confidence) / 2))
    spread = student * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - math.hypot(spread, below)), math.exp(mean + math.hypot(spread, above))
