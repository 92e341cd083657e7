"""Which cell of an experiment to use, why, and what speaks against it.

The rule has two steps. A technique decides what stands in clear, so the one that leaves the fewest labelled private
words unmasked is taken (without labelled text, the one that masks most); quality does not enter, since masking less
always measures better. Among what can be adapted on under that technique, fills and the masked text itself
(Baseline1), those are kept that a paired interval does not tell apart from the lowest perplexity over known words (over
all words ``<unk>`` distorts it), and of these the lowest over all words is taken. The numbers are of the test text that
the choice is made by. Limits on what attacks find come before both: what is not known to meet them is no candidate.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.filling.methods import METHODS
from tasks.language_model.settings import MANY_UNKNOWN, EvaluationSettings
from tasks.masking.settings import MANY_MASKED
from tasks.records.cell import Cell
from tasks.records.cells import audit_report, fill_report, training_report
from tasks.results.findings.findings_comparison import PERPLEXITIES, Comparison, Condition, Experiment, Outcome
from tasks.results.leakage import meets, said_of
from tasks.results.report_index import REPORTS, ReportIndex
from tasks.results.titles import technique_name

_FEW_TEST_SENTENCES, _FEW_TRAINED_SENTENCES = 1000, 3000
NOT_ATTACKED = (
    "Not tested: attackers who know more than public text and models, people with many lines, earlier rounds "
    "of a filler that was tuned in several, and whoever guesses from several fills of it."
)
_MISSED = "evaluate_masking"
"""The stage that holds techniques against labelled text."""


@dataclass(frozen=True)
class Verdict:
    """The answer for one data set, in sentences."""

    dataset: str
    cell: Cell | None
    """``None`` where no cell is known to meet the limits."""
    use: str
    """``mask by the allow list, fill by Log-linear, minilm``."""
    sections: Mapping[str, Sequence[str]]
    """Why, what speaks against it, how sure it is, and what else there is: each a heading with its sentences."""
    where: Mapping[str, str]
    """What lies where, and the command that lets it leave."""

    def lines(self) -> list[str]:
        """As a terminal shows it."""
        found = [f"Verdict for {self.dataset}: {self.use}."]
        for heading, sentences in self.sections.items():
            found += [f"  {heading}", *(f"    {sentence}" for sentence in sentences)]
        return [*found, *(f"  {name}: {place}" for name, place in self.where.items())]


def verdicts(
    all_rows: Sequence[Mapping[str, Any]],
    index: ReportIndex,
    scores: str | Path | None,
    limits: Mapping[str, float] | None = None,
) -> list[Verdict]:
    """One for each data set of a summary of which something was filled; ``limits`` by the name of a figure."""
    rows = [row for row in all_rows if row["perplexity"] is not None]
    experiment = Experiment(rows, scores, EvaluationSettings())
    datasets = dict.fromkeys(row["dataset"] for row in rows)
    choices = (_Choice(dataset, experiment, index, limits or {}) for dataset in datasets)
    return [choice.verdict() for choice in choices if choice.usable]


class _Choice:
    """What the verdict of a data set is made of."""

    def __init__(self, dataset: str, experiment: Experiment, index: ReportIndex, limits: Mapping[str, float]) -> None:
        self._dataset, self._experiment, self._reports, self._limits = dataset, experiment, index.reports, limits
        mine = [condition for condition in experiment.by_condition if condition.dataset == dataset]
        usable = [each for each in mine if not experiment.follows_other_protocol(each)]
        self.usable = [each for each in usable if self._hides(each) or each.method == "baseline1"]
        if not any(each.is_filled for each in self.usable):
            self.usable = []
        self.candidates = [each for each in self.usable if meets(self._rows(each), limits) == "yes"]
        self._references = {each.method: each for each in usable if each.technique is None}
        every = [*self.usable, *self._references.values()]
        self._known = all(experiment.number(each, PERPLEXITIES[True]) is not None for each in every)

    def _hides(self, condition: Condition) -> bool:
        """Whether it is a fill, and none that writes masked words by design: that would be best for what it tells."""
        report = self._report(fill_report(self._cell(condition)))
        kind = report["parameters"].get("kind") if report is not None else None
        return condition.is_filled and not (kind in METHODS and METHODS[kind].returns_originals)

    def _cell(self, condition: Condition) -> Cell:
        """With the first of its seeds."""
        seed = next(iter(self._experiment.by_condition[condition]))
        return Cell(condition.dataset, condition.technique, condition.method, condition.filler, seed)

    def _rows(self, condition: Condition) -> list[Mapping[str, Any]]:
        return list(self._experiment.by_condition[condition].values())

    @property
    def _said_limits(self) -> str:
        return ", ".join(f"{name} at most {limit:g}" for name, limit in self._limits.items())

    def _none_meets(self) -> Verdict:
        """What keeps every cell from meeting the limits."""
        reasons = {
            "no": "is above a limit",
            "open": "cannot be told from a limit: its interval holds it",
            "unknown": "was not attacked (audited in compare.fills names what is)",
        }
        by_answer: dict[str, list[str]] = {}
        for each in self.usable:
            name = f"{each.label}, {technique_name(str(each.technique))}"
            by_answer.setdefault(reasons[meets(self._rows(each), self._limits)], []).append(name)
        found = [f"{'; '.join(names)}: {reason}." for reason, names in by_answer.items()]
        use = f"no cell is known to meet the limits: {self._said_limits}"
        return Verdict(self._dataset, None, use, {"Why": found}, {})

    def verdict(self) -> Verdict:
        """The answer."""
        if not self.candidates:
            return self._none_meets()
        technique, *others = self._techniques
        best = self._chosen(technique)
        cell = self._cell(best)
        sections = {
            "Why": [self._why_technique(technique), *self._why_fill(best)],
            "What it gives away": self._given_away(best),
            "What speaks against it": self._against(best),
            "How sure": self._warnings(best),
            "Instead": [self._beside(name, self._chosen(name)) for name in others],
        }
        return Verdict(
            self._dataset,
            cell,
            f"mask by the {technique_name(technique)}, "
            + (f"fill by {best.label}" if best.is_filled else f"leave the markers in ({best.label})"),
            {heading: sentences for heading, sentences in sections.items() if sentences},
            self._where(cell),
        )

    def _chosen(self, technique: str) -> Condition:
        """Of what a paired interval does not tell apart from the lowest over known words, the lowest over all."""
        lowest, *others = self._ranked(technique, known=self._known)
        alike = [lowest, *(other for other in others if self._way(lowest, other) == "open")]
        return next(each for each in self._ranked(technique, known=False) if each in alike)

    @cached_property
    def _techniques(self) -> list[str]:
        """The most careful one first; what masks more than half of the words is not careful but leaves no text, unless
        labelled text says that it has to."""
        names = dict.fromkeys(str(each.technique) for each in self.candidates)
        judged = all(self._found(name) is not None for name in names)

        def order(name: str) -> tuple[bool, float, float]:
            masked = self._masked(name) or 0.0
            return masked > MANY_MASKED and not judged, -(self._found(name) or 0.0), -masked

        return sorted(names, key=order)

    def _found(self, technique: str) -> float | None:
        """Share of labelled private words that it masks: the mean over the labelled texts."""
        found = [
            report["measured"]["token"]["recall"]
            for report in self._reports.values()
            if report["stage"] == _MISSED and report["measured"]["technique"] == technique
        ]
        return sum(found) / len(found) if found and None not in found else None

    def _masked(self, technique: str) -> float | None:
        rows = (row for each in self.candidates for row in self._experiment.by_condition[each].values())
        return next((row["masked_fraction"] for row in rows if row["technique"] == technique), None)

    def _ranked(self, technique: str, *, known: bool) -> list[Condition]:
        mine = [each for each in self.candidates if each.technique == technique]
        return [condition for _, condition in self._experiment.ranking(mine, PERPLEXITIES[known]).ranked]

    def _number(self, condition: Condition, known: bool | None = None) -> float:
        field = PERPLEXITIES[self._known if known is None else known]
        number = self._experiment.number(condition, field)
        assert number is not None, "candidates without a number are not ranked"
        return number

    def _way(self, first: Condition, second: Condition, known: bool | None = None) -> Outcome:
        """Whether a paired interval says that the first is below the second (``for``), above it, or neither."""
        compared = self._experiment.compare(first, second, "below", known=self._known if known is None else known)
        return compared.outcome if isinstance(compared, Comparison) else "open"

    def _why_technique(self, technique: str) -> str:
        shares = [(name, self._found(name)) for name in self._techniques]
        masked = self._masked(technique)
        said = f"The {technique_name(technique)} masks {masked:.1%} of the words" if masked is not None else "It masks"
        if len(shares) == 1:
            return f"{said}; no other technique {'meets the limits' if self._limits else 'was compared'}."
        if any(share is None for _, share in shares):
            most = max(self._masked(name) or 0.0 for name in self._techniques)
            which = "the others" if masked == most else "any other that leaves half of them"
            return f"{said}, more than {which}; no labelled text says what each of them misses."
        others = ", ".join(f"{technique_name(name)} {share:.1%}" for name, share in shares[1:])
        return (
            f"{said} and {shares[0][1]:.1%} of the private words of the labelled text "
            f"({', '.join(self._gold_sets)}), the most ({others})."
        )

    @property
    def _gold_sets(self) -> list[str]:
        found = [report["measured"]["gold_set"] for report in self._reports.values() if report["stage"] == _MISSED]
        return [f"{name}, made up" if name == "templates" else name for name in dict.fromkeys(found)]

    def _why_fill(self, best: Condition) -> list[str]:
        others = [each for each in self._ranked(str(best.technique), known=self._known) if each != best]
        below = [other for other in others if self._way(best, other) == "for"]
        alike = [other for other in others if self._way(best, other) == "open"]
        said = (
            f"{best.label} has a perplexity of {self._number(best):.1f} over {'known' if self._known else 'all'} words"
        )
        if "oracle" in self._references:
            said += f" (adapted on the raw text: {self._number(self._references['oracle']):.1f})"
        sentences = [f"{said}{f', below {_names(below)} by paired intervals' if below else ''}."]
        if alike and self._known:
            sentences.append(
                f"Not told apart there: {_names(alike)}. Of these it is lowest over all words, "
                f"{self._number(best, False):.1f}."
            )
        elif alike:
            sentences.append(f"Not told apart from it: {_names(alike)}; any of these would do as well.")
        if best.is_filled and best.filler is None:
            sentences.append("It needs no language model to fill.")
        return sentences

    def _against(self, best: Condition) -> list[str]:
        said = []
        pretrained = self._references.get("pretrained")
        for known in (True, False) if self._known else (False,):
            way = self._way(best, pretrained, known) if pretrained is not None else "for"
            if pretrained is None or way == "for":
                continue
            numbers = f"{self._number(best, known):.1f} against {self._number(pretrained, known):.1f}"
            worse = "made the model worse than not adapting it"
            no_better = "does not make the model better than not adapting it, as far as the interval tells"
            words = "known words" if known else "all words"
            said.append(f"Adapting on it {worse if way == 'against' else no_better}: {numbers} over {words}.")
        lowest = self._ranked(str(best.technique), known=False)[0]
        if lowest != best and self._way(best, lowest, known=False) == "against":
            said.append(
                f"Over all words, where <unk> counts as a word, {lowest.label} is lower: "
                f"{self._number(lowest, False):.1f} against {self._number(best, False):.1f}."
            )
        if not best.is_filled:
            said.append(
                "No fill is better than leaving the markers in; what 'palimpsest release' lets leave is a fill."
            )
        found = self._found(str(best.technique))
        if found is not None and found < 1:
            said.append(
                f"{1 - found:.1%} of the labelled private words stay in clear; on your own text nobody has counted: "
                "'palimpsest preview' shows what it would mask."
            )
        return said

    def _given_away(self, best: Condition) -> list[str]:
        rows = self._rows(best)
        said = said_of(rows)
        if not said:
            return ["Nobody has attacked it: name its method under audited, in its entry of compare.fills."]
        if self._limits:
            said.insert(0, f"It meets the limits: {self._said_limits}.")
        report = Path(REPORTS) / audit_report(self._cell(best))
        return [*said, f"Who attacked with what, by figure: attackers in {report}.", NOT_ATTACKED]

    def _beside(self, technique: str, other: Condition) -> str:
        found, masked = self._found(technique), self._masked(technique)
        clear = f", and leaves {1 - found:.1%} of the labelled private words in clear" if found is not None else ""
        share = f" {masked:.1%} of the words" if masked is not None else ""
        name = technique_name(technique)
        return f"The {name} masks{share}{clear}; {other.label} on it has {self._number(other):.1f}."

    def _warnings(self, best: Condition) -> list[str]:
        rows = list(self._experiment.by_condition[best].values())
        sentences = max(row["sentences"] for row in rows)
        said = []
        trained = self._trained()
        if sentences < _FEW_TEST_SENTENCES:
            said.append(f"Few test sentences ({sentences:,}): intervals are wide, and small differences are not seen.")
        if trained is not None and trained < _FEW_TRAINED_SENTENCES:
            said.append(f"Few training sentences ({trained:,}): with more, another fill may come out best.")
        if len(rows) == 1:
            said.append("One seed: another draw of the fills may change the order (compare.seeds: [1, 2, 3]).")
        unknown = max((row["oov_rate"] or 0.0 for row in rows), default=0.0)
        if unknown > MANY_UNKNOWN:
            said.append(
                f"{unknown:.0%} of the test words are unknown to the language model, so perplexities say little."
            )
        masked = self._masked(str(best.technique))
        if masked is not None and masked > MANY_MASKED:
            said.append(f"More than half of the words are masked ({masked:.0%}): what is left is hardly your text.")
        return said

    def _trained(self) -> int | None:
        """Sentences of the part that was masked."""
        found = (
            report["measured"]["sentences"]["train"]
            for report in self._reports.values()
            if report["stage"] == "corpora" and report["cell"].get("dataset") == self._dataset
        )
        return next(found, None)

    def _where(self, cell: Cell) -> dict[str, str]:
        fill, model = self._report(fill_report(cell)), self._report(training_report(cell))
        found = {
            name: next(iter(report["outputs"]), "") for name, report in (("text", fill), ("model", model)) if report
        }
        if fill is not None:
            found["to let it leave"] = shlex.join(["palimpsest", "release", cell.path, "--name", f"{cell.dataset}_1"])
        return found

    def _report(self, path: Path | None) -> Mapping[str, Any] | None:
        return None if path is None else self._reports.get(path.with_suffix("").as_posix())


def leaders(experiment: Experiment, dataset: str, *, known: bool) -> dict[str, tuple[str, str | None]]:
    """Of each technique method and filler of the fill with the lowest perplexity, where a paired interval tells it from
    every other fill."""
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


def _names(conditions: Sequence[Condition]) -> str:
    *first, last = (condition.label for condition in conditions)
    return f"{', '.join(first)} and {last}" if first else last
