"""Which cell of an experiment to release: recommendation, quality, leakage, and whether it can be released now.

The rule. Candidates are fills; one that writes masked words back by design is none. A candidate passes by its figures if
the upper ends of all intervals are within the limits: unmasked direct identifiers within ``release.unmasked_direct``,
attacks within ``release.at_most`` (or ``--at-most``); what was not attacked does not pass. Of all that pass, those are
taken whose perplexity over in-vocabulary words is not significantly different from the lowest (95 %, paired bootstrap).
Of these the one with the lowest perplexity over all words is recommended. If none passes, the technique with the highest
recall of direct identifiers is taken (by review, else by the reference reader), and among its fills the same rule.
The perplexities are of the test text that the choice is made by.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.filling.methods import METHODS
from tasks.language_model.settings import MANY_UNKNOWN, EvaluationSettings
from tasks.masking.settings import MANY_MASKED
from tasks.records.cell import Cell
from tasks.records.cells import audit_report, fill_report, training_report, unmasked_report
from tasks.results.findings.findings_comparison import PERPLEXITIES, Comparison, Condition, Experiment, Outcome
from tasks.results.leakage import meets, said_of
from tasks.results.measures import measure
from tasks.results.readings import Reading, readings, stronger
from tasks.results.report_index import REPORTS, ReportIndex
from tasks.results.summary.summary_file import SUMMARY_FILE, read_summary
from tasks.results.tables import number_text
from tasks.results.titles import filler_name, in_sentence, method_name, technique_name, technique_phrase

if TYPE_CHECKING:
    from tasks.privacy.gate import Outcome as ReleaseOutcome

_FEW_TEST_SENTENCES, _FEW_TRAINED_SENTENCES = 1000, 3000
NOT_ATTACKED = (
    "Not tested: attackers who know more than public text and models, people with many lines, earlier rounds "
    "of a filler that was tuned in several, and attackers with several fills of one text."
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a cell has to stay within, by the upper ends of its intervals."""

    unmasked_direct: float
    """Unmasked direct identifiers per 1,000 lines."""
    at_most: Mapping[str, float]
    """Figures of the audit by name."""
    asked: bool = False
    """Whether ``at_most`` was typed: the gate of releases does not know it then."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one data set."""

    dataset: str
    cell: Cell
    use: str
    """``Mask with the allow list, fill with the log-linear method (MiniLM).``"""
    reason: str
    """Why, in one sentence."""
    quality: Sequence[str]
    leakage: Sequence[Reading]
    notes: Sequence[str]
    """What the leakage table rests on, and what it lacks."""
    command: str | None
    """The command that releases the cell; ``None`` where it would be refused."""
    missing: Sequence[str]
    """What is missing for a release, or was asked for and is not met."""
    sections: Mapping[str, Sequence[str]]
    """Details: headings with their sentences."""
    where: Mapping[str, str]
    """Where text and model are."""

    @property
    def released(self) -> Sequence[str]:
        """Sentences on whether it can be released now."""
        return [f"Yes: {self.command}", *self.missing] if self.command else ["No.", *self.missing]

    def lines(self, details: bool = False) -> list[str]:
        """For a terminal of 100 columns."""
        table = [(each.attack, each.result, each.chance, each.reading) for each in self.leakage]
        table = [("Leakage", "result", "chance", "reading"), *((f"  {name}", *rest) for name, *rest in table)]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        found = [
            f"{self.dataset}: {self.use}",
            *_wrapped("  ", self.reason),
            *_wrapped("Quality: ", " ".join(self.quality)),
            *(
                f"{name:<{widths[0]}}  {result:<{widths[1]}}  {chance:>{widths[2]}}  {reading}"
                for name, result, chance, reading in table
                if self.leakage
            ),
            *(line for note in self.notes for line in _wrapped("  ", note)),
            *_released(self.released),
        ]
        if details:
            for heading, sentences in self.sections.items():
                found += ["", heading, *(line for sentence in sentences for line in _wrapped("  - ", sentence))]
            found += ["", *(f"{name}: {place}" for name, place in self.where.items())]
        return found


def _wrapped(start: str, text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, 100, initial_indent=start, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _released(sentences: Sequence[str]) -> list[str]:
    """Commands in one piece, so that they can be copied."""
    first, *rest = sentences
    return [f"Can it be released now? {first}", *(line for each in rest for line in _wrapped("  - ", each))]


def verdicts(
    all_rows: Sequence[Mapping[str, Any]],
    index: ReportIndex,
    scores: str | Path | None,
    limits: Limits,
    outcome: Callable[[str], "ReleaseOutcome"],
) -> list[Verdict]:
    """One for each data set of a summary of which something was filled.

    ``outcome``: what a release of a cell would come to, by the cell's path.
    """
    rows = [row for row in all_rows if row["perplexity"] is not None]
    experiment = Experiment(rows, scores, EvaluationSettings())
    choices = (_Choice(name, experiment, index, limits) for name in dict.fromkeys(row["dataset"] for row in rows))
    return [choice.verdict(outcome) for choice in choices if choice.candidates]


def current_verdicts(at_most: Mapping[str, float] | None = None) -> list[Verdict]:
    """Those of the project folder as it is now. ``at_most``: limits in place of ``release.at_most``."""
    from tasks.parameters.parameter_file import read_parameters
    from tasks.privacy.gate import release_outcome

    parameters = read_parameters()
    allowed = parameters.release
    limits = Limits(allowed.unmasked_direct, at_most or allowed.at_most, asked=bool(at_most))
    scores = Path(SUMMARY_FILE).parent / "scores"
    rows, index = read_summary(SUMMARY_FILE), ReportIndex(REPORTS)
    return verdicts(rows, index, scores, limits, lambda cell: release_outcome(cell, parameters))


class _Choice:
    """What the verdict of a data set is made of."""

    def __init__(self, dataset: str, experiment: Experiment, index: ReportIndex, limits: Limits) -> None:
        self._dataset, self._experiment, self._reports, self._limits = dataset, experiment, index.reports, limits
        mine = [each for each in experiment.by_condition if each.dataset == dataset]
        mine = [each for each in mine if not experiment.follows_other_protocol(each)]
        self._baselines = {each.technique: each for each in mine if each.method == "baseline1"}
        self._references = {each.method: each for each in mine if each.technique is None}
        known = [each for each in mine if self._hides(each)]
        every = [*known, *self._baselines.values(), *self._references.values()]
        self._known = all(experiment.number(each, PERPLEXITIES[True]) is not None for each in every)
        self.candidates = [each for each in known if experiment.number(each, PERPLEXITIES[self._known]) is not None]
        self._passing = [each for each in self.candidates if self._passes(each)]

    def _hides(self, condition: Condition) -> bool:
        report = self._report(fill_report(self._cell(condition)))
        kind = report["parameters"].get("kind") if report is not None else None
        return condition.is_filled and not (kind in METHODS and METHODS[kind].returns_originals)

    def _passes(self, condition: Condition) -> bool:
        rows = self._rows(condition)
        limits = {"unmasked_direct": self._limits.unmasked_direct, **self._limits.at_most}
        return all(row.get("attackers") for row in rows) and meets(rows, limits) == "yes"

    def _cell(self, condition: Condition) -> Cell:
        """With the first of its seeds."""
        seed = next(iter(self._experiment.by_condition[condition]))
        return Cell(condition.dataset, condition.technique, condition.method, condition.filler, seed)

    def _rows(self, condition: Condition) -> list[Mapping[str, Any]]:
        return list(self._experiment.by_condition[condition].values())

    def _report(self, path: Path | None) -> Mapping[str, Any] | None:
        return None if path is None else self._reports.get(path.with_suffix("").as_posix())

    def verdict(self, outcome: Callable[[str], "ReleaseOutcome"]) -> Verdict:
        """The answer."""
        best = self._chosen(self._passing or self._most_careful())
        cell = self._cell(best)
        found = outcome(cell.path)
        rows = self._rows(best)
        sections = {
            "Why this one": self._why(best),
            "Leakage": [*said_of(rows), f"Attackers: {Path(REPORTS) / audit_report(cell)}.", NOT_ATTACKED],
            "Drawbacks": self._drawbacks(best),
            "Confidence": self._confidence(best),
            "Alternatives": self._alternatives(best),
        }
        return Verdict(
            self._dataset,
            cell,
            f"Mask with {technique_phrase(str(best.technique))}, fill with {_fill_phrase(best)}.",
            self._reason(best),
            self._quality(best),
            list(readings(rows, self._limits.unmasked_direct)),
            self._notes(best),
            found.command if found.passes else None,
            [*found.missing, *self._beyond(best)],
            {heading: sentences for heading, sentences in sections.items() if sentences},
            self._where(cell),
        )

    def _chosen(self, conditions: Sequence[Condition]) -> Condition:
        """Of what is not significantly different from the lowest perplexity over in-vocabulary words, the lowest over
        all words: over all words ``<unk>`` distorts it."""
        lowest, *others = self._ranked(conditions, known=self._known)
        alike = [lowest, *(other for other in others if self._way(lowest, other) == "open")]
        return next((each for each in self._ranked(conditions, known=False) if each in alike), lowest)

    def _most_careful(self) -> list[Condition]:
        """The fills of the technique with the highest recall of direct identifiers (without a recall, the highest
        masking rate): those within the limits of attacks, else those that were attacked, else all."""

        def order(technique: str) -> tuple[float, float]:
            row = next(self._rows(each)[0] for each in self.candidates if each.technique == technique)
            masked = row["masked_fraction"] or 0.0
            # What masks most of the words leaves no text.
            return row.get("recall_direct") or 0.0, -1.0 if masked > MANY_MASKED else masked

        technique = max(dict.fromkeys(str(each.technique) for each in self.candidates), key=order)
        mine = [each for each in self.candidates if each.technique == technique]
        attacked = [each for each in mine if any(row.get("attackers") for row in self._rows(each))]
        within = [each for each in attacked if meets(self._rows(each), self._limits.at_most) == "yes"]
        return within or attacked or mine

    def _ranked(self, conditions: Sequence[Condition], *, known: bool) -> list[Condition]:
        return [condition for _, condition in self._experiment.ranking(conditions, PERPLEXITIES[known]).ranked]

    def _number(self, condition: Condition, known: bool | None = None) -> float:
        number = self._experiment.number(condition, PERPLEXITIES[self._known if known is None else known])
        assert number is not None, "candidates without a number are not ranked"
        return number

    def _way(self, first: Condition, second: Condition, known: bool | None = None) -> Outcome:
        """Whether a paired interval says that the first is below the second (``for``), above it, or neither."""
        compared = self._experiment.compare(first, second, "below", known=self._known if known is None else known)
        return compared.outcome if isinstance(compared, Comparison) else "open"

    def _reason(self, best: Condition) -> str:
        if len(self._passing) == 1:
            return "It is the only cell within all limits of a release."
        if self._passing:
            return f"Of {len(self._passing)} cells within all limits of a release it has the lowest perplexity."
        recall = measure("recall_direct").estimate(self._rows(best))
        by = self._rows(best)[0].get("unmasked_by")
        if recall is None:
            return "No cell is within all limits of a release; this technique masks the most."
        return (
            "No cell is within all limits of a release; this technique masks the most direct identifiers whole: "
            f"{number_text(recall)} % by {'the ' if by == 'reference reader' else ''}{by}."
        )

    def _quality(self, best: Condition) -> list[str]:
        numbers = {"raw text (Oracle)": self._references.get("oracle")}
        numbers["masked, not filled (Baseline1)"] = self._baselines.get(best.technique)
        others = [f"{name} {self._number(each):.1f}" for name, each in numbers.items() if each is not None]
        words = "in-vocabulary" if self._known else "all"
        said = [f"perplexity {self._number(best):.1f} ({words} words); {', '.join(others)}.".replace("; .", ".")]
        gap = measure("gap_closed_known").estimate(self._rows(best))
        if gap is not None:
            said.append(f"It closes {number_text(gap, 0)} % of the gap from Baseline1 to Oracle (log scale).")
        return said

    def _notes(self, best: Condition) -> list[str]:
        said = []
        found = self._report(unmasked_report(self._dataset))
        techniques = found["measured"]["techniques"] if found is not None else {}
        if str(best.technique) in techniques:
            said.append(
                f"Unmasked identifiers by {techniques[best.technique]['by']}: {techniques[best.technique]['basis']}."
            )
        audit = self._report(audit_report(self._cell(best)))
        if audit is None:
            said.append("Not attacked: add its method to 'audited' in its entry of compare.fills.")
        elif more := stronger(audit["parameters"]):
            said.append(more)
        return said

    def _beyond(self, best: Condition) -> list[str]:
        """Limits that were typed and are not met, which the gate does not know."""
        limits = self._limits.at_most if self._limits.asked else {}
        beyond = [name for name, limit in limits.items() if meets(self._rows(best), {name: limit}) != "yes"]
        return [
            f"--at-most {name}={limits[name]:g} is not met: {number_text(measure(name).estimate(self._rows(best)), 2)}."
            for name in beyond
        ]

    def _why(self, best: Condition) -> list[str]:
        others = [each for each in self._passing or self.candidates if each != best]
        below = [other for other in others if self._way(best, other) == "for"]
        alike = [other for other in others if self._way(best, other) == "open"]
        said = []
        if below:
            said.append(f"Its perplexity is significantly lower than that of {_names(below)}.")
        if alike:
            all_words = f"over all words it has {self._number(best, False):.1f}"
            said.append(f"Not significantly different: {_names(alike)}; {all_words}.")
        if best.filler is None:
            said.append("It needs no infilling model.")
        return said

    def _drawbacks(self, best: Condition) -> list[str]:
        said = []
        pretrained, baseline = self._references.get("pretrained"), self._baselines.get(best.technique)
        for name, other in (("not adapting it", pretrained), ("leaving the mask tokens in (Baseline1)", baseline)):
            if other is not None and (way := self._way(best, other)) != "for":
                worse = "is worse than" if way == "against" else "is not significantly better than"
                said.append(
                    f"For the language model this fill {worse} {name}: {self._number(best):.1f} against "
                    f"{self._number(other):.1f}."
                )
        lowest = self._ranked([each for each in self.candidates if each.technique == best.technique], known=False)[0]
        if lowest != best and self._way(best, lowest, known=False) == "against":
            said.append(
                f"Over all words, where <unk> counts as a word, {_named(lowest)} is lower: "
                f"{self._number(lowest, False):.1f} against {self._number(best, False):.1f}."
            )
        masked = self._rows(best)[0]["masked_fraction"]
        if masked is not None and masked > MANY_MASKED:
            said.append(f"More than half of the words are masked ({masked:.0%}).")
        return said

    def _confidence(self, best: Condition) -> list[str]:
        rows = self._rows(best)
        sentences, trained = max(row["sentences"] for row in rows), self._trained()
        unknown = max((row["oov_rate"] or 0.0 for row in rows), default=0.0)
        said = {
            f"Few test sentences ({sentences:,}): small differences are not seen.": sentences < _FEW_TEST_SENTENCES,
            f"Few training sentences ({trained or 0:,}): with more, another fill may be better.": (
                trained is not None and trained < _FEW_TRAINED_SENTENCES
            ),
            "One seed: another seed may change the order (compare.seeds: [1, 2, 3]).": len(rows) == 1,
            f"{unknown:.0%} of the test words are out of vocabulary: perplexities say little.": unknown > MANY_UNKNOWN,
        }
        return [sentence for sentence, holds in said.items() if holds]

    def _trained(self) -> int | None:
        """Sentences of the part that was masked."""
        found = (
            report["measured"]["sentences"]["train"]
            for report in self._reports.values()
            if report["stage"] == "corpora" and report["cell"].get("dataset") == self._dataset
        )
        return next(found, None)

    def _alternatives(self, best: Condition) -> list[str]:
        said = []
        for technique in dict.fromkeys(str(each.technique) for each in self.candidates):
            mine = [each for each in self.candidates if each.technique == technique]
            if technique == best.technique:
                continue
            other = self._chosen([each for each in mine if each in self._passing] or mine)
            row = self._rows(other)[0]
            unmasked = measure("unmasked_direct").estimate([row])
            said.append(
                f"{technique_name(technique).capitalize()}, {_named(other)}: perplexity {self._number(other):.1f}; masking rate "
                f"{row['masked_fraction']:.1%}; unmasked direct identifiers per 1,000 lines "
                f"{number_text(unmasked)}; {'within' if other in self._passing else 'not within'} all limits."
            )
        return said

    def _where(self, cell: Cell) -> dict[str, str]:
        reports = {"text": self._report(fill_report(cell)), "model": self._report(training_report(cell))}
        return {name: next(iter(report["outputs"]), "") for name, report in reports.items() if report}


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


def _fill_phrase(condition: Condition) -> str:
    """``the log-linear method (MiniLM)``."""
    filler = f" ({filler_name(condition.filler)})" if condition.filler else ""
    return f"the {in_sentence(method_name(condition.method))} method{filler}"


def _named(condition: Condition) -> str:
    return in_sentence(condition.label)


def _names(conditions: Sequence[Condition]) -> str:
    several = len({condition.technique for condition in conditions}) > 1
    *first, last = (
        _named(each) + (f" ({technique_name(str(each.technique))})" if several else "") for each in conditions
    )
    return f"{', '.join(first)} and {last}" if first else last
