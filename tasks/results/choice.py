"""Which cell of a data set to recommend, by one rule.

Candidates are fills. A candidate passes if the upper ends of all its intervals are within the limits: unmasked direct
identifiers within ``release.unmasked_direct``, attacks within ``release.at_most``. A candidate that
was not attacked does not pass. Among the passing ones, those remain whose perplexity over in-vocabulary words is not
significantly different from the lowest (95 %, paired bootstrap). Of these, the one with the lowest perplexity over all
words is recommended.

If none passes, the technique with the highest recall of direct identifiers is taken (by review, else by the reference
reader), and the same rule among its fills. The perplexities are of the test text that decides the choice.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.masking.settings import MANY_MASKED
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell
from tasks.results.findings.findings_comparison import PERPLEXITIES, Condition, Experiment, Outcome
from tasks.results.leakage import meets
from tasks.results.measure import follows_protocol
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_file import summarised_cell


class Choice:
    """Candidates of a data set, and the recommended one."""

    def __init__(self, dataset: str, experiment: Experiment, index: ReportIndex, limits: ReleaseSettings) -> None:
        self.dataset, self._experiment, self._reports, self.limits = dataset, experiment, index.reports, limits
        mine = [each for each in experiment.rows if each.dataset == dataset]
        mine = [each for each in mine if follows_protocol(experiment.rows[each])]
        self.baselines = {each.technique: each for each in mine if each.method == "baseline1"}
        self.references = {each.method: each for each in mine if each.technique is None}
        known = [each for each in mine if each.is_filled]
        every = [*known, *self.baselines.values(), *self.references.values()]
        self.known = all(experiment.number(each, PERPLEXITIES[True]) is not None for each in every)
        self.candidates = [each for each in known if experiment.number(each, PERPLEXITIES[self.known]) is not None]
        self.passing = [each for each in self.candidates if self._passes(each)]

    def _passes(self, condition: Condition) -> bool:
        rows = self.rows(condition)
        limits = {"unmasked_direct": self.limits.unmasked_direct, **self.limits.at_most}
        return all(row.get("attackers") for row in rows) and meets(rows, limits)

    def cell(self, condition: Condition) -> Cell:
        """The condition's cell with its first seed."""
        return summarised_cell(self.rows(condition)[0])

    def rows(self, condition: Condition) -> Sequence[Mapping[str, Any]]:
        """The rows of its seeds."""
        return self._experiment.rows[condition]

    def report(self, path: Path | None) -> Mapping[str, Any] | None:
        """The report at a path in the folder of reports; ``None`` if there is none."""
        return None if path is None else self._reports.get(path.with_suffix("").as_posix())

    def best(self) -> Condition:
        """The recommended condition."""
        return self.chosen(self.passing or self._most_careful())

    def chosen(self, conditions: Sequence[Condition]) -> Condition:
        """One of the conditions whose perplexity over in-vocabulary words is not significantly different from
        the lowest: the lowest over all words. ``<unk>`` distorts perplexities over all words, so they decide last."""
        lowest, *others = self.ranked(conditions, known=self.known)
        alike = [lowest, *(other for other in others if self.way(lowest, other) == "open")]
        return next((each for each in self.ranked(conditions, known=False) if each in alike), lowest)

    def _most_careful(self) -> list[Condition]:
        """The fills of the technique with the highest recall of direct identifiers (without a recall, the
        highest masking rate): those within the limits of attacks, else those that were attacked, else all."""

        def order(technique: str) -> tuple[float, float]:
            row = next(self.rows(each)[0] for each in self.candidates if each.technique == technique)
            masked = row["masked_fraction"] or 0.0
            # A technique that masks most of the words leaves no text.
            return row.get("recall_direct") or 0.0, -1.0 if masked > MANY_MASKED else masked

        technique = max(dict.fromkeys(str(each.technique) for each in self.candidates), key=order)
        mine = [each for each in self.candidates if each.technique == technique]
        attacked = [each for each in mine if any(row.get("attackers") for row in self.rows(each))]
        within = [each for each in attacked if meets(self.rows(each), self.limits.at_most)]
        return within or attacked or mine

    def ranked(self, conditions: Sequence[Condition], *, known: bool) -> list[Condition]:
        """The conditions, lowest perplexity first, over in-vocabulary words (``known``) or all words."""
        return self._experiment.ranked(conditions, PERPLEXITIES[known])

    def number(self, condition: Condition, known: bool | None = None) -> float:
        """Its perplexity; by default over in-vocabulary words if every cell has that."""
        number = self._experiment.number(condition, PERPLEXITIES[self.known if known is None else known])
        assert number is not None, "candidates without a number are not ranked"
        return number

    def way(self, first: Condition, second: Condition, known: bool | None = None) -> Outcome:
        """Whether a paired interval shows the first below the second (``for``), above it, or neither."""
        return self._experiment.compare(
            first, second, field=PERPLEXITIES[self.known if known is None else known]
        ).outcome
