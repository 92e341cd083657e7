"""Differences between cells with their intervals: the evidence for the findings.

Two cells are compared on the same test sentences, seed by seed, by the ratio of their perplexities and its paired
bootstrap. A bootstrap over sentences does not cover the variation over seeds. So with ``n`` seeds the half width of the
mean log ratio's interval is the root of the sum of two squares. One is Student's ``t`` (``n - 1`` degrees of freedom)
times the standard error over the seeds. The other is the mean half width of the seeds' bootstrap intervals; it is not
divided by ``sqrt(n)``, since all seeds are tested on the same sentences.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from tasks.errors import CorpusError
from tasks.language_model.settings import EvaluationSettings
from tasks.records.cells import score_file
from tasks.results.measures import measure
from tasks.results.summary.estimate import estimate, mean, over_seeds
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.titles import cell_label, group_of

Row = Mapping[str, Any]
Side = Literal["below", "above"]
Outcome = Literal["for", "against", "open"]
Seeds = Sequence[int | None]
_Ratio = tuple[float, float | None, float | None]
"""A ratio and its interval."""
PERPLEXITIES = {True: "perplexity_known", False: "perplexity"}
"""Columns of perplexities; True: over in-vocabulary words only."""
_MEASURES = {"perplexity": "perplexity", "wer": "word error rate"}
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

    dataset: str
    technique: str
    first: str
    second: str
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
    def outcome(self) -> Outcome:
        """The interval's outcome for the claim; ``open`` if it includes the limit, or there is none."""
        if self.low is None or self.high is None or self.low <= self.limit <= self.high:
            return "open"
        return "for" if (self.high < self.limit) == (self.expected == "below") else "against"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Conditions by one number over the seeds that all of them have, the lowest first."""

    seeds: tuple[int | None, ...]
    ranked: tuple[tuple[float, Condition], ...]
    left_out: tuple[Condition, ...]
    """Conditions with no seed in common with the ranked ones, or with their references."""

    @property
    def best(self) -> Condition | None:
        """The condition with the lowest number; ``None`` if there is none."""
        return self.ranked[0][1] if self.ranked else None


class Experiment:
    """The rows of a summary, by condition and seed, and the sentence scores from which they were measured."""

    def __init__(self, rows: Sequence[Row], scores: str | Path | None, evaluation: EvaluationSettings) -> None:
        """``scores``: the folder of scores from evaluation. Without it only the intervals of the rows exist, which
        compare with Oracle and Baseline1. Raises ``CorpusError`` if the file of a row is missing in it."""
        self._scores = Path(scores) if scores is not None and Path(scores).is_dir() else None
        self._evaluation = evaluation
        self._checked = cache(_refuse_other_scores)
        self._compared = cache(partial(_paired_ratio, evaluation))
        self.by_condition: dict[Condition, dict[int | None, Row]] = {}
        for row in rows:
            condition = Condition(row["dataset"], row["technique"], row["method"], row["filler"])
            self.by_condition.setdefault(condition, {})[row["seed"]] = row
        self._refuse_missing_scores(rows)
        self._signatures = _reference_signatures(rows)

    def _refuse_missing_scores(self, rows: Sequence[Row]) -> None:
        if self._scores is None:
            return
        wanted = [score_file(summarised_cell(row)) for row in rows if row["perplexity"] is not None]
        missing = [str(path) for path in wanted if not (self._scores / path).is_file()]
        if missing:
            shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise CorpusError(
                f"{len(missing)} of the {len(wanted)} files of sentence scores that the summary was made from are not "
                f"in {str(self._scores)!r}: {shown}; run 'dvc repro' again"
            )

    def filled(self) -> Iterator[Condition]:
        """Conditions whose corpus was filled, by a filler or by a control."""
        return (condition for condition in self.by_condition if condition.is_filled)

    def pretrained(self, condition: Condition) -> Condition | None:
        """The same fill by the pretrained filler of this one's tuning; ``None`` if the filler was not tuned."""
        row = next(iter(self.by_condition[condition].values()))
        return replace(condition, filler=row["filler_base"]) if row["filler_base"] else None

    def seeds_with(self, condition: Condition, field: str) -> list[int | None]:
        """The seeds for which a column has a number."""
        return [seed for seed, row in self.by_condition[condition].items() if row.get(field) is not None]

    def common_seeds(self, conditions: Sequence[Condition], field: str) -> list[int | None]:
        """The seeds for which a column has a number for all; a reference without a seed matches any."""
        seeded = [condition for condition in conditions if not self._without_seed(condition)] or conditions
        had = [self.seeds_with(condition, field) for condition in seeded]
        everywhere = all(self.seeds_with(condition, field) for condition in conditions)
        return [seed for seed in had[0] if all(seed in seeds for seeds in had)] if everywhere else []

    def rows(self, condition: Condition, seeds: Sequence[int | None]) -> list[Row]:
        """The rows of these seeds, or the one row of a reference without a seed."""
        rows = self.by_condition[condition]
        return [rows[seed] for seed in ([None] if self._without_seed(condition) else seeds)]

    def _without_seed(self, condition: Condition) -> bool:
        return not condition.is_filled and list(self.by_condition[condition]) == [None]

    def number(self, condition: Condition, field: str, seeds: Sequence[int | None] | None = None) -> float | None:
        """The mean of a column over the seeds, all or these: the geometric mean for logarithmic measures.

        ``None`` if a seed has no number.
        """
        rows = self.rows(condition, list(self.by_condition[condition]) if seeds is None else seeds)
        values = [value for row in rows if (value := row.get(field)) is not None]
        if not values or len(values) < len(rows):
            return None
        mean = statistics.geometric_mean if measure(field).logarithmic else statistics.fmean
        return mean(values)

    def ranking(self, conditions: Sequence[Condition], field: str, beside: Sequence[Condition] = ()) -> Ranking:
        """Conditions ranked by a column, over the seeds that they and those ``beside`` with the column all have.

        Means over different seeds do not compare. If no seed is common to all, the ranking is over the seed that most
        have, and all others that these share. Conditions without a number are not ranked.
        """
        beside = [other for other in beside if self.seeds_with(other, field)]
        common = {c: self.common_seeds([c, *beside], field) for c in conditions if self.seeds_with(c, field)}
        shared_by = Counter(seed for seeds in common.values() for seed in seeds)
        if not shared_by:
            return Ranking((), (), tuple(common))
        most = max(shared_by, key=lambda seed: shared_by[seed])
        together = [condition for condition, seeds in common.items() if most in seeds]
        seeds = tuple(seed for seed in common[together[0]] if all(seed in common[c] for c in together))
        numbers = [(number, c) for c in together if (number := self.number(c, field, seeds)) is not None]
        left_out = tuple(condition for condition in common if condition not in together)
        return Ranking(seeds, tuple(sorted(numbers, key=lambda pair: pair[0])), left_out)

    def follows_other_protocol(self, condition: Condition) -> bool:
        """Whether its perplexities do not compare with those of its Oracle (of the first cell, if none)."""
        rows = self.by_condition[condition].values()
        return any(row.get("signature") != self._signatures[condition.dataset] for row in rows)

    def compare(
        self,
        first: Condition,
        second: Condition,
        expected: Side = "below",
        limit: float = 1.0,
        *,
        known: bool = False,
        measure: str = "perplexity",
        seeds: Seeds | None = None,
    ) -> Paired:
        """The ratio of two conditions' perplexities (or word error rates: ``measure="wer"``) by common seed.

        ``seeds`` replaces the common seeds. ``known`` counts in-vocabulary words only. Raises ``CorpusError`` if the
        scores are not those of the rows.
        """
        for condition in (first, second):
            if condition not in self.by_condition:
                return self.cannot(first, second, f"{condition.label} is not in the summary")
        field = PERPLEXITIES[known] if measure == "perplexity" else measure
        if not all(self.seeds_with(condition, field) for condition in (first, second)):
            return self.cannot(first, second, f"one of them has no {_MEASURES[measure]}")
        seeds = self.common_seeds([first, second], field) if seeds is None else seeds
        if not seeds:
            return self.cannot(first, second, "they have no seed in common")
        mine, others = self.rows(first, seeds), self.rows(second, seeds)
        # A second condition without a seed is the same for each.
        pairs = list(zip(mine, others * len(mine), strict=False))
        if measure == "wer":
            found = _ratio_of_rates(mine, others, second.method)
        elif any(row.get("signature") != other.get("signature") for row, other in pairs):
            return self.cannot(first, second, "their perplexities follow different protocols")
        else:
            ratios = [self._of_seed(*pair, second.method, known) for pair in pairs]
            found = combined(ratios, self._evaluation.confidence)
        place = self.cannot(first, second, "")
        return replace(
            place, ratio=found[0], low=found[1], high=found[2], seeds=len(pairs), expected=expected, limit=limit
        )

    def cannot(self, first: Condition, second: Condition, reason: str) -> Paired:
        """A comparison that cannot be made."""
        techniques = dict.fromkeys(each.technique for each in (first, second) if each.technique is not None)
        return Paired(first.dataset, " / ".join(techniques), first.label, second.label, reason=reason)

    def _score_file(self, row: Row) -> Path | None:
        """The file with the scores of a row's sentences; ``None`` without a folder of scores.

        Raises ``CorpusError`` if they are another model's, so that their perplexity is not the row's.
        """
        if self._scores is None or row.get("perplexity") is None:
            return None
        path = self._scores / score_file(summarised_cell(row))
        self._checked(path, row["perplexity"], row["signature"])
        return path

    def _of_seed(self, mine: Row, other: Row, reference: str, known: bool) -> _Ratio:
        """The ratio from the scores of sentences; without them from the rows' own numbers and intervals."""
        first, second = self._score_file(mine), self._score_file(other)
        if first is not None and second is not None:
            return self._compared(first, second, known)
        field = PERPLEXITIES[known]
        low, high = mine.get(f"{field.replace('perplexity', f'ratio_to_{reference}')}_ci") or (None, None)
        return mine[field] / other[field], low, high


def _reference_signatures(rows: Sequence[Row]) -> dict[str, str | None]:
    """The protocol of each data set: that of its Oracle, or of its first row."""
    signatures: dict[str, str | None] = {}
    for row in sorted(rows, key=lambda row: row["method"] != "oracle"):
        if row.get("perplexity") is not None:
            signatures.setdefault(row["dataset"], row.get("signature"))
    for row in rows:
        signatures.setdefault(row["dataset"], None)
    return signatures


def _paired_ratio(evaluation: EvaluationSettings, first: Path, second: Path, known: bool) -> _Ratio:
    from tasks.language_model.evaluation.bootstrap import paired_perplexity_ratio

    resampling = evaluation.bootstrap_samples, evaluation.confidence, evaluation.seed
    return paired_perplexity_ratio(first, second, *resampling, known=known)


def _refuse_other_scores(path: Path, perplexity: float, signature: str | None) -> None:
    from tasks.language_model.evaluation.bootstrap import perplexity_of
    from tasks.language_model.evaluation.sentence_scores import read_scores

    scores, of_scores = read_scores(path)
    found = perplexity_of(scores.log_probability, scores.targets)
    if found is None or not math.isclose(found, perplexity, rel_tol=_SAME) or of_scores != signature:
        raise CorpusError(
            f"the scores in {str(path)!r} give a perplexity of {found} ({of_scores}), and the summary says "
            f"{perplexity} ({signature}): they are not of the same evaluation; give the scores that the summary was "
            "made from, or run 'palimpsest summarise' again"
        )


def _ratio_of_rates(rows: Sequence[Row], references: Sequence[Row], method: str) -> _Ratio:
    """The ratio of two mean word error rates, with the interval of their paired difference."""
    mine, others = mean(rows, "wer"), mean(references, "wer")
    if mine is None or not others:
        return math.inf, None, None
    difference = estimate(rows, f"wer_difference_to_{method}")
    # Over several seeds the summary has an interval over utterances and seeds, or none: their range is no interval.
    together = len(rows) == 1 or over_seeds(rows, f"wer_difference_to_{method}") is not None
    if difference is None or difference.low is None or difference.high is None or not together:
        return mine / others, None, None
    return mine / others, 1 + difference.low / others, 1 + difference.high / others


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
    spread = student_t(confidence, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - math.hypot(spread, below)), math.exp(mean + math.hypot(spread, above))


def student_t(confidence: float, freedom: int) -> float:
    """The two-sided quantile of Student's distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))
