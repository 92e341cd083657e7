"""Which cell of a data set to recommend, by one rule.

Candidates are fills; one that writes masked words back by design is none. A candidate passes by its figures if the
upper ends of all intervals are within the limits: unmasked direct identifiers within ``release.unmasked_direct``,
attacks within ``release.at_most`` (or ``--at-most``). What was not attacked does not pass. Of all that pass, those
are taken whose perplexity over in-vocabulary words is not significantly different from the lowest (95 %, paired
bootstrap). Of these the one with the lowest perplexity over all words is recommended.

If none passes, the technique with the highest recall of direct identifiers is taken (by review, else by the reference
reader), and among its fills the same rule. The perplexities are of the test text that the choice is made by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.filling.methods import METHODS
from tasks.masking.settings import MANY_MASKED
from tasks.records.cell import Cell
from tasks.records.cells import fill_report
from tasks.results.findings.findings_comparison import PERPLEXITIES, Comparison, Condition, Experiment, Outcome
from tasks.results.leakage import meets
from tasks.results.report_index import ReportIndex


@dataclass(frozen=True, slots=True)
class Limits:
    """What a cell has to stay within, by the upper ends of its intervals."""

    unmasked_direct: float
    """Unmasked direct identifiers per 1,000 lines."""
    at_most: Mapping[str, float]
    """Figures of the audit by name."""
    asked: bool = False
    """Whether ``at_most`` was typed: the gate of releases does not know it then."""


class Choice:
    """The candidates of a data set, and the one that is recommended."""

    def __init__(self, dataset: str, experiment: Experiment, index: ReportIndex, limits: Limits) -> None:
        self.dataset, self._experiment, self._reports, self.limits = dataset, experiment, index.reports, limits
        mine = [each for each in experiment.by_condition if each.dataset == dataset]
        mine = [each for each in mine if not experiment.follows_other_protocol(each)]
        self.baselines = {each.technique: each for each in mine if each.method == "baseline1"}
        self.references = {each.method: each for each in mine if each.technique is None}
        known = [each for each in mine if self._hides(each)]
        every = [*known, *self.baselines.values(), *self.references.values()]
        self.known = all(experiment.number(each, PERPLEXITIES[True]) is not None for each in every)
        self.candidates = [each for each in known if experiment.number(each, PERPLEXITIES[self.known]) is not None]
        self.passing = [each for each in self.candidates if self._passes(each)]

    def _hides(self, condition: Condition) -> bool:
        report = self.report(fill_report(self.cell(condition)))
        kind = report["parameters"].get("kind") if report is not None else None
        return condition.is_filled and not (kind in METHODS and METHODS[kind].returns_originals)

    def _passes(self, condition: Condition) -> bool:
        rows = self.rows(condition)
        limits = {"unmasked_direct": self.limits.unmasked_direct, **self.limits.at_most}
        return all(row.get("attackers") for row in rows) and meets(rows, limits) == "yes"

    def cell(self, condition: Condition) -> Cell:
        """With the first of its seeds."""
        seed = next(iter(self._experiment.by_condition[condition]))
        return Cell(condition.dataset, condition.technique, condition.method, condition.filler, seed)

    def rows(self, condition: Condition) -> list[Mapping[str, Any]]:
        """Those of its seeds."""
        return list(self._experiment.by_condition[condition].values())

    def report(self, path: Path | None) -> Mapping[str, Any] | None:
        """By its path below the folder of reports; ``None`` where there is none."""
        return None if path is None else self._reports.get(path.with_suffix("").as_posix())

    def best(self) -> Condition:
        """The recommended one."""
        return self.chosen(self.passing or self._most_careful())

    def chosen(self, conditions: Sequence[Condition]) -> Condition:
        """Of what is not significantly different from the lowest perplexity over in-vocabulary words, the lowest over
        all words: over all words ``<unk>`` distorts it."""
        lowest, *others = self.ranked(conditions, known=self.known)
        alike = [lowest, *(other for other in others if self.way(lowest, other) == "open")]
        return next((each for each in self.ranked(conditions, known=False) if each in alike), lowest)

    def _most_careful(self) -> list[Condition]:
        """The fills of the technique with the highest recall of direct identifiers (without a recall, the highest
        masking rate): those within the limits of attacks, else those that were attacked, else all."""

        def order(technique: str) -> tuple[float, float]:
            row = next(self.rows(each)[0] for each in self.candidates if each.technique == technique)
            masked = row["masked_fraction"] or 0.0
            # What masks most of the words leaves no text.
            return row.get("recall_direct") or 0.0, -1.0 if masked > MANY_MASKED else masked

        technique = max(dict.fromkeys(str(each.technique) for each in self.candidates), key=order)
        mine = [each for each in self.candidates if each.technique == technique]
        attacked = [each for each in mine if any(row.get("attackers") for row in self.rows(each))]
        within = [each for each in attacked if meets(self.rows(each), self.limits.at_most) == "yes"]
        return within or attacked or mine

    def ranked(self, conditions: Sequence[Condition], *, known: bool) -> list[Condition]:
        """The lowest perplexity first, over in-vocabulary words (``known``) or all words."""
        return [condition for _, condition in self._experiment.ranking(conditions, PERPLEXITIES[known]).ranked]

    def number(self, condition: Condition, known: bool | None = None) -> float:
        """Its perplexity; without ``known`` over in-vocabulary words where every cell has that."""
        number = self._experiment.number(condition, PERPLEXITIES[self.known if known is None else known])
        assert number is not None, "candidates without a number are not ranked"
        return number

    def way(self, first: Condition, second: Condition, known: bool | None = None) -> Outcome:
        """Whether a paired interval says that the first is below the second (``for``), above it, or neither."""
        compared = self._experiment.compare(first, second, "below", known=self.known if known is None else known)
        return compared.outcome if isinstance(compared, Comparison) else "open"


def leaders(experiment: Experiment, dataset: str, *, known: bool) -> dict[str, tuple[str, str | None]]:
    """Of each technique method and filler of the fill with the lowest perplexity, where it is significantly lower than
    that of every other fill."""
    found = {}
    filled = [condition for condition in experiment.filled() if condition.dataset == dataset]
    for technique in dict.fromkeys(str(condition.technique) for condition in filled):
        mine = [each for each in filled if each.technique == technique]
        mine = [each for each in mine if not experiment.follows_other_protocol(each)]
        best = experiment.ranking(mine, PERPLEXITIES[known]).best
        compared = [experiment.compare(best, other, "below", known=known) for other in mine if best and other != best]
        if best is not None and all(isinstance(each, Comparison) and each.outcome == "for" for each in compared):
            found[technique] = best.method, best.filler
    return found
