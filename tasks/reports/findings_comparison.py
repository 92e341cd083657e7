"""Differences between cells with their intervals: what the findings are judged by.

Two cells are compared on the same test sentences, seed by seed, by the ratio of their perplexities and its paired
bootstrap. A bootstrap over sentences does not see what another seed would give. So with ``n`` seeds the interval of
the mean log ratio reaches to both sides by the root of the sum of two squares: Student's ``t`` (``n - 1`` degrees of
freedom) times the standard error over the seeds, and the mean half width of the seeds' bootstrap intervals, which
cannot be divided by ``sqrt(n)`` since all seeds are tested on the same sentences.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tasks.errors import CorpusError
from tasks.language_model.settings import EvaluationSettings
from tasks.reports.expected_cells import score_file
from tasks.reports.summary_file import summarised_cell
from tasks.reports.summary_table import method_name

Row = Mapping[str, Any]
Side = Literal["below", "above"]
Outcome = Literal["for", "against", "open"]
ShareOfGap = Literal["closed", "left"]
"""Closed: from the worse end, in log perplexity. Left: to the better end, in perplexity."""
REFERENCES = ("pretrained", "oracle", "baseline0", "baseline1")
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
        """``Top-K, minilm``."""
        return method_name(self.method) + (f", {self.filler}" if self.filler else "")

    @property
    def is_filled(self) -> bool:
        """Whether its language model was trained on a filled corpus."""
        return self.technique is not None and self.method not in REFERENCES


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

    def as_dict(self) -> dict[str, Any]:
        """All fields and the outcome."""
        return {**asdict(self), "outcome": self.outcome}


@dataclass(frozen=True, slots=True)
class Incomparable:
    """A comparison that is asked for and cannot be made."""

    dataset: str
    technique: str
    first: str
    second: str
    reason: str
    """What is wrong with the two, as the rest of a sentence."""


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
                f"in {str(self._scores)!r}: {shown}; give their folder with --scores, or run 'dvc repro' again"
            )

    def filled(self) -> Iterator[Condition]:
        """Conditions whose corpus was filled, by a filler or by a control."""
        return (condition for condition in self.by_condition if condition.is_filled)

    def beside(self, condition: Condition, method: str, filler: str | None = None) -> Condition | None:
        """Another condition of the same dataset and technique (Oracle has none), where it is part of the summary."""
        technique = None if method in ("oracle", "pretrained") else condition.technique
        other = Condition(condition.dataset, technique, method, filler)
        return other if other in self.by_condition else None

    def number(self, condition: Condition, field: str) -> float | None:
        """Geometric mean of a column over the seeds; ``None`` where a seed has no number above 0."""
        values = [row.get(field) for row in self.by_condition[condition].values()]
        known = [value for value in values if value is not None and value > 0]
        return statistics.geometric_mean(known) if known and len(known) == len(values) else None

    def perplexity(self, condition: Condition, *, known: bool) -> float | None:
        """Its perplexity over the seeds, to be ranked with others; ``None`` too where it follows another protocol than
        its data set's Oracle."""
        if self.follows_other_protocol(condition):
            return None
        return self.number(condition, "perplexity_known" if known else "perplexity")

    def follows_other_protocol(self, condition: Condition) -> bool:
        """Whether its perplexities do not compare with those of its data set's Oracle (of the first cell, if none)."""
        return bool(self.seeds_of_other_protocol(condition))

    def seeds_of_other_protocol(self, condition: Condition) -> list[int | None]:
        """The seeds of which it does so."""
        rows = self.by_condition[condition].items()
        return [seed for seed, row in rows if row.get("signature") != self._signatures[condition.dataset]]

    def compare(
        self, first: Condition, second: Condition, expected: Side, *, known: bool = False
    ) -> Comparison | Incomparable:
        """The ratio of two conditions' perplexities over the seeds that both have.

        ``known`` counts only words of the vocabulary. Raises ``CorpusError`` where scores are not those of the rows.
        """
        techniques = list(dict.fromkeys(c.technique for c in (first, second) if c.technique is not None))
        place = first.dataset, " / ".join(techniques), first.label, second.label
        if second not in self.by_condition:
            return Incomparable(*place, f"{second.label} is not in the summary")
        seeds = [seed for seed in self.by_condition[first] if seed in self.by_condition[second]]
        if not seeds:
            return Incomparable(*place, "they have no seed in common")
        pairs = [(self.by_condition[first][seed], self.by_condition[second][seed]) for seed in seeds]
        if any(mine.get("signature") != others.get("signature") for mine, others in pairs):
            return Incomparable(*place, "their perplexities follow different protocols")
        ratios = [self._of_seed(second.method, mine, others, known=known) for mine, others in pairs]
        found = [ratio for ratio in ratios if ratio is not None]
        if len(found) < len(ratios):
            return Incomparable(*place, "one of them has no perplexity")
        mean, low, high = combined(found, self._evaluation.confidence)
        return Comparison(*place, mean, low, high, len(found), expected)

    def share_interval(
        self, share: ShareOfGap, model: Condition, worse: Condition, better: Condition, *, known: bool = False
    ) -> tuple[float, float] | None:
        """The interval of a share of the gap between two conditions, by a bootstrap over test sentences and seeds.

        ``None`` without scores, where a seed of ``model`` is missing of the others, where they follow different
        protocols, and where ``better`` is not better. Raises ``CorpusError`` where scores cannot be compared.
        """
        from tasks.language_model.evaluation.bootstrap import gap_closed, gap_left
        from tasks.language_model.evaluation.sentence_scores import ALL, KNOWN

        seeds: list[tuple[Path, ...]] = []
        for seed in self.by_condition[model]:
            rows = [self.by_condition[condition].get(seed) for condition in (model, worse, better)]
            files = tuple(path for row in rows if row and (path := self._score_file(row)))
            if len(files) < len(rows) or len({row.get("signature") for row in rows if row}) > 1:
                return None
            seeds.append(files)
        settings, group = self._evaluation, KNOWN if known else ALL
        resampling = group, settings.bootstrap_samples, settings.confidence, settings.seed
        whole = [(worst, best) for _, worst, best in seeds]
        if share == "closed":
            _, low, high = gap_closed([(worst, mine) for mine, worst, _ in seeds], whole, *resampling)
        else:
            _, low, high = gap_left([(mine, best) for mine, _, best in seeds], whole, *resampling)
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
