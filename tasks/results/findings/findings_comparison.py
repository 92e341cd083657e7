"""Differences between cells with their intervals: what the findings are judged by.

Two cells are compared on the same test sentences, seed by seed, by the ratio of their perplexities and its paired
bootstrap. A bootstrap over sentences does not see what another seed would give. So with ``n`` seeds the interval of
the mean log ratio reaches to both sides by the root of the sum of two squares: Student's ``t`` (``n - 1`` degrees of
freedom) times the standard error over the seeds, and the mean half width of the seeds' bootstrap intervals, which
cannot be divided by ``sqrt(n)`` since all seeds are tested on the same sentences.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tasks.errors import CorpusError
from tasks.language_model.settings import EvaluationSettings
from tasks.records.cells import score_file
from tasks.results.measures import measure
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.titles import cell_label, group_of

Row = Mapping[str, Any]
Side = Literal["below", "above"]
Outcome = Literal["for", "against", "open"]
ShareOfGap = Literal["closed", "left"]
"""Closed: from the worse end, in log perplexity. Left: to the better end, in perplexity."""
PERPLEXITIES = {True: "perplexity_known", False: "perplexity"}
"""Columns, by whether words of the vocabulary alone count."""
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
class Comparison:
    """A ratio of two cells' numbers, and on which side of ``limit`` a claim expects it."""

    dataset: str
    technique: str
    first: str
    second: str
    ratio: float
    """First by second; the geometric mean over seeds."""
    low: float | None
    high: float | None
    seeds: int
    expected: Side
    limit: float = 1.0

    @property
    def outcome(self) -> Outcome:
        """What the interval says of the claim; ``open``: it holds the limit, or there is none."""
        if self.low is None or self.high is None or self.low <= self.limit <= self.high:
            return "open"
        return "for" if (self.high < self.limit) == (self.expected == "below") else "against"


@dataclass(frozen=True, slots=True)
class Incomparable:
    """A comparison that is asked for and cannot be made."""

    dataset: str
    technique: str
    first: str
    second: str
    reason: str
    """What is wrong with the two, as the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Conditions by one number over the seeds that all of them have, the lowest first."""

    seeds: tuple[int | None, ...]
    ranked: tuple[tuple[float, Condition], ...]
    left_out: tuple[Condition, ...]
    """Those that have no seed in common with the ranked ones, or with what these are held against."""

    @property
    def best(self) -> Condition | None:
        """The one with the lowest number; ``None`` of none."""
        return self.ranked[0][1] if self.ranked else None


class Experiment:
    """The rows of a summary, by condition and seed, and the scores of sentences that they were measured by."""

    def __init__(self, rows: Sequence[Row], scores: str | Path | None, evaluation: EvaluationSettings) -> None:
        """``scores``: the folder that evaluation wrote; without it there are the intervals of the rows themselves,
        which compare with Oracle and Baseline1 alone. Raises ``CorpusError`` where a file of a row is missing in it.
        """
        self._scores = Path(scores) if scores is not None and Path(scores).is_dir() else None
        self._checked: set[Path] = set()
        self._evaluation = evaluation
        self._compared: dict[tuple[Path, Path, bool], tuple[float, float | None, float | None]] = {}
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
        """The same fill by the filler that this one's was tuned from at first; ``None`` where it was not tuned."""
        row = next(iter(self.by_condition[condition].values()))
        return replace(condition, filler=row["filler_base"]) if row["filler_base"] else None

    def beside(self, condition: Condition, method: str) -> Condition | None:
        """A reference of the same dataset and technique (Oracle has none), where it is part of the summary."""
        technique = None if method in ("oracle", "pretrained") else condition.technique
        other = Condition(condition.dataset, technique, method, None)
        return other if other in self.by_condition else None

    def seeds_with(self, condition: Condition, field: str) -> list[int | None]:
        """The seeds of which a column has a number."""
        return [seed for seed, row in self.by_condition[condition].items() if row.get(field) is not None]

    def common_seeds(self, conditions: Sequence[Condition], field: str) -> list[int | None]:
        """The seeds of which a column has a number for all; a reference without a seed stands beside any."""
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
        """Mean of a column over the seeds, all or these: the geometric one of what plots show by its logarithm.

        ``None`` where a seed has no number.
        """
        rows = self.rows(condition, list(self.by_condition[condition]) if seeds is None else seeds)
        values = [value for row in rows if (value := row.get(field)) is not None]
        if not values or len(values) < len(rows):
            return None
        mean = statistics.geometric_mean if measure(field).logarithmic else statistics.fmean
        return mean(values)

    def ranking(self, conditions: Sequence[Condition], field: str, beside: Sequence[Condition] = ()) -> Ranking:
        """Conditions by a column over the seeds that all of them have, and those ``beside`` that have it at all.

        Means over different seeds do not compare. Where no seed is common to all, it is over the seed that most have,
        and all others that these share. Conditions without a number are not ranked.
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
        """Whether its perplexities do not compare with those of its data set's Oracle (of the first cell, if none)."""
        return bool(self.seeds_of_other_protocol(condition))

    def seeds_of_other_protocol(self, condition: Condition) -> list[int | None]:
        """The seeds of which it does so."""
        rows = self.by_condition[condition].items()
        return [seed for seed, row in rows if row.get("signature") != self._signatures[condition.dataset]]

    def compare(
        self,
        first: Condition,
        second: Condition,
        expected: Side,
        *,
        known: bool = False,
        seeds: Sequence[int | None] | None = None,
    ) -> Comparison | Incomparable:
        """The ratio of two conditions' perplexities over the seeds that both have, all or these; the second may be
        the pretrained model, which has none.

        ``known`` counts only words of the vocabulary. Raises ``CorpusError`` where scores are not those of the rows.
        """
        techniques = list(dict.fromkeys(c.technique for c in (first, second) if c.technique is not None))
        place = first.dataset, " / ".join(techniques), first.label, second.label
        if second not in self.by_condition:
            return Incomparable(*place, f"{second.label} is not in the summary")
        mine, others = self.by_condition[first], self.by_condition[second]
        if self._without_seed(second):
            others = dict.fromkeys(mine, others[None])
        pairs = [(mine[seed], others[seed]) for seed in mine if seed in others and (seeds is None or seed in seeds)]
        if not pairs:
            return Incomparable(*place, "they have no seed in common")
        if any(row.get("signature") != other.get("signature") for row, other in pairs):
            return Incomparable(*place, "their perplexities follow different protocols")
        ratios = [self._of_seed(second.method, *pair, known=known) for pair in pairs]
        found = [ratio for ratio in ratios if ratio is not None]
        if len(found) < len(ratios):
            return Incomparable(*place, "one of them has no perplexity")
        mean, low, high = combined(found, self._evaluation.confidence)
        return Comparison(*place, mean, low, high, len(found), expected)

    def share_interval(
        self,
        share: ShareOfGap,
        model: Condition,
        worse: Condition,
        better: Condition,
        *,
        known: bool = False,
        seeds: Sequence[int | None] | None = None,
    ) -> tuple[float, float] | None:
        """The interval of a share of the gap between two conditions, by a bootstrap over test sentences and seeds.

        ``seeds``: all of ``model``, or these. ``None`` without scores, where one of them is missing of the others,
        where they follow different protocols, and where ``better`` is not better. Raises ``CorpusError`` where scores
        cannot be compared.
        """
        from tasks.language_model.evaluation.bootstrap import gap_closed, gap_left
        from tasks.language_model.evaluation.sentence_scores import ALL, KNOWN

        scored: list[tuple[Path, ...]] = []
        for seed in self.by_condition[model] if seeds is None else seeds:
            rows = [self.by_condition[condition].get(seed) for condition in (model, worse, better)]
            files = tuple(path for row in rows if row and (path := self._score_file(row)))
            if len(files) < len(rows) or len({row.get("signature") for row in rows if row}) > 1:
                return None
            scored.append(files)
        settings, group = self._evaluation, KNOWN if known else ALL
        resampling = group, settings.bootstrap_samples, settings.confidence, settings.seed
        whole = [(worst, best) for _, worst, best in scored]
        if share == "closed":
            _, low, high = gap_closed([(worst, mine) for mine, worst, _ in scored], whole, *resampling)
        else:
            _, low, high = gap_left([(mine, best) for mine, _, best in scored], whole, *resampling)
        return None if low is None or high is None else (low, high)

    def _score_file(self, row: Row) -> Path | None:
        """Where the scores of a row's sentences are; ``None`` without a folder of them.

        Raises ``CorpusError`` where they are another model's, so that their perplexity is not the row's.
        """
        if self._scores is None or row.get("perplexity") is None:
            return None
        path = self._scores / score_file(summarised_cell(row))
        if path not in self._checked:
            _refuse_other_scores(path, row)
            self._checked.add(path)
        return path

    def _of_seed(self, reference: str, *rows: Row, known: bool) -> tuple[float, float | None, float | None] | None:
        mine, others = map(self._score_file, rows)
        if mine is not None and others is not None:
            return self._paired(mine, others, known)
        suffix = "_known" if known else ""
        column = f"ratio_to_{reference}{suffix}"
        if reference in ("oracle", "baseline1") and rows[0].get(f"{column}_ci"):
            return rows[0][column], *rows[0][f"{column}_ci"]
        numbers = [row.get(f"perplexity{suffix}") for row in rows]
        return (numbers[0] / numbers[1], None, None) if numbers[0] and numbers[1] else None

    def _paired(self, first: Path, second: Path, known: bool) -> tuple[float, float | None, float | None]:
        from tasks.language_model.evaluation.bootstrap import paired_perplexity_ratio

        key = (first, second, known)
        if key not in self._compared:
            settings = self._evaluation
            self._compared[key] = paired_perplexity_ratio(
                first, second, settings.bootstrap_samples, settings.confidence, settings.seed, known=known
            )
        return self._compared[key]


def _reference_signatures(rows: Sequence[Row]) -> dict[str, str | None]:
    """The protocol of each data set: that of its Oracle, or of its first row."""
    signatures: dict[str, str | None] = {}
    for row in sorted(rows, key=lambda row: row["method"] != "oracle"):
        if row.get("perplexity") is not None:
            signatures.setdefault(row["dataset"], row.get("signature"))
    for row in rows:
        signatures.setdefault(row["dataset"], None)
    return signatures


def _refuse_other_scores(path: Path, row: Row) -> None:
    from tasks.language_model.evaluation.bootstrap import perplexity_of
    from tasks.language_model.evaluation.sentence_scores import read_scores

    scores, signature = read_scores(path)
    found = perplexity_of(scores.log_probability, scores.targets)
    same = found is not None and math.isclose(found, row["perplexity"], rel_tol=_SAME)
    if not same or signature != row.get("signature", signature):
        raise CorpusError(
            f"the scores in {str(path)!r} give a perplexity of {found} ({signature}), and the summary says "
            f"{row['perplexity']} ({row.get('signature')}): they are not of the same evaluation; give the scores that "
            "the summary was made from, or run 'palimpsest summarise' again"
        )


def combined(
    ratios: Sequence[tuple[float, float | None, float | None]], confidence: float
) -> tuple[float, float | None, float | None]:
    """Ratio and interval over seeds, by the rule above; each item is a seed's ratio and its bootstrap interval."""
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
