"""Which cell of an experiment to use, why, and what speaks against it.

The rule has two steps. A technique decides what stands in clear, so the one that leaves the fewest labelled private
words unmasked is taken (without labelled text, the one that masks most); quality does not enter, since masking less
always measures better. Among what can be adapted on under that technique, fills and the masked text itself
(Baseline1), the lowest perplexity over known words is taken (over all words ``<unk>`` distorts it), and what a paired
interval does not tell apart from it is named beside it. The numbers are of the test text that the choice is made by.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.language_model.settings import EvaluationSettings
from tasks.records.cell import Cell
from tasks.records.cells import fill_report, training_report
from tasks.results.findings.findings_comparison import PERPLEXITIES, Comparison, Condition, Experiment
from tasks.results.report_index import ReportIndex
from tasks.results.titles import technique_name

_FEW_TEST_SENTENCES, _FEW_TRAINED_SENTENCES = 1000, 3000
_MANY_UNKNOWN, _MANY_MASKED = 0.3, 0.5
_MISSED = "evaluate_masking"
"""The stage that holds techniques against labelled text."""


@dataclass(frozen=True)
class Verdict:
    """The answer for one data set, in sentences."""

    dataset: str
    cell: Cell
    use: str
    """``Log-linear, minilm, on what the allow list masks``."""
    why: Sequence[str]
    against: Sequence[str]
    where: Sequence[tuple[str, str]]
    """What lies where, and the command that lets it leave."""

    def lines(self) -> list[str]:
        """As a terminal shows it."""
        return [
            f"Verdict for {self.dataset}: {self.use}.",
            *(f"  + {sentence}" for sentence in self.why),
            *(f"  - {sentence}" for sentence in self.against),
            *(f"  {name}: {place}" for name, place in self.where),
        ]


def verdicts(all_rows: Sequence[Mapping[str, Any]], index: ReportIndex, scores: str | Path | None) -> list[Verdict]:
    """One for each data set of a summary of which something was filled."""
    rows = [row for row in all_rows if row["perplexity"] is not None]
    experiment = Experiment(rows, scores, EvaluationSettings())
    choices = (_Choice(dataset, experiment, index) for dataset in dict.fromkeys(row["dataset"] for row in rows))
    return [choice.verdict() for choice in choices if choice.candidates]


class _Choice:
    """What the verdict of a data set is made of."""

    def __init__(self, dataset: str, experiment: Experiment, index: ReportIndex) -> None:
        self._dataset, self._experiment, self._reports = dataset, experiment, index.reports
        mine = [condition for condition in experiment.by_condition if condition.dataset == dataset]
        usable = [each for each in mine if not experiment.follows_other_protocol(each)]
        self.candidates = [each for each in usable if each.is_filled or each.method == "baseline1"]
        if not any(each.is_filled for each in self.candidates):
            self.candidates = []
        self._references = {each.method: each for each in usable if each.technique is None}
        every = [*self.candidates, *self._references.values()]
        self._known = all(experiment.number(each, PERPLEXITIES[True]) is not None for each in every)

    def verdict(self) -> Verdict:
        ranked = {name: self._ranked(name, known=self._known) for name in self._techniques}
        technique = self._techniques[0]
        best = ranked[technique][0]
        seed = next(iter(self._experiment.by_condition[best]))
        cell = Cell(best.dataset, best.technique, best.method, best.filler, seed)
        others = [self._beside(name, ranked[name][0], best) for name in self._techniques[1:]]
        against = [*self._against(best, ranked[technique]), *others, *self._warnings(best)]
        return Verdict(
            self._dataset,
            cell,
            f"{best.label} {'of' if best.is_filled else 'on'} what the {technique_name(technique)} masks",
            [self._why_technique(technique), *self._why_fill(best, ranked[technique])],
            against,
            self._where(cell),
        )

    @cached_property
    def _techniques(self) -> list[str]:
        """The most careful one first."""
        names = dict.fromkeys(str(each.technique) for each in self.candidates)
        return sorted(names, key=lambda name: (-(self._found(name) or 0.0), -(self._masked(name) or 0.0)))

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

    def _ratio(self, first: Condition, second: Condition, *, known: bool | None = None) -> Comparison | None:
        compared = self._experiment.compare(first, second, "below", known=self._known if known is None else known)
        return compared if isinstance(compared, Comparison) else None

    def _why_technique(self, technique: str) -> str:
        shares = [(name, self._found(name)) for name in self._techniques]
        masked = self._masked(technique)
        said = f"The {technique_name(technique)} masks {masked:.1%} of the words" if masked is not None else "It masks"
        if len(shares) == 1:
            return f"{said}; no other technique was compared."
        if any(share is None for _, share in shares):
            return f"{said}, more than the others; no labelled text says what each of them misses."
        others = ", ".join(f"{technique_name(name)} {share:.1%}" for name, share in shares[1:])
        return (
            f"{said} and {shares[0][1]:.1%} of the private words of the labelled text "
            f"({', '.join(self._gold_sets)}), the most ({others})."
        )

    @property
    def _gold_sets(self) -> list[str]:
        found = [report["measured"]["gold_set"] for report in self._reports.values() if report["stage"] == _MISSED]
        return [f"{name}, made up" if name == "templates" else name for name in dict.fromkeys(found)]

    def _why_fill(self, best: Condition, ranked: Sequence[Condition]) -> list[str]:
        words = "known words" if self._known else "all words"
        said = f"{best.label} has the lowest perplexity over {words}, {self._number(best):.1f}"
        if "oracle" in self._references:
            said += f" (adapted on the raw text: {self._number(self._references['oracle']):.1f})"
        ratios = {other: self._ratio(best, other) for other in ranked[1:]}
        apart = [other for other, ratio in ratios.items() if ratio is not None and ratio.outcome == "for"]
        alike = [other for other in ratios if other not in apart]
        sentences = [f"{said}."]
        if apart:
            sentences.append(f"By paired intervals it is below {_names(apart)}.")
        if alike:
            sentences.append(f"Not told apart from it: {_names(alike)}; any of these would do as well.")
        if best.is_filled and best.filler is None:
            sentences.append("It needs no language model to fill.")
        return sentences

    def _against(self, best: Condition, ranked: Sequence[Condition]) -> list[str]:
        said = []
        pretrained = self._references.get("pretrained")
        for known in (True, False) if self._known and pretrained else (False,) if pretrained else ():
            words = "known words" if known else "all words"
            ratio = self._ratio(best, pretrained, known=known) if pretrained else None
            if ratio is None or ratio.outcome == "for" or pretrained is None:
                continue
            numbers = f"{self._number(best, known):.1f} against {self._number(pretrained, known):.1f} over {words}"
            worse = "made the model worse than not adapting it"
            no_better = "does not make the model better than not adapting it, as far as the interval tells"
            said.append(f"Adapting on it {worse if ratio.outcome == 'against' else no_better}: {numbers}.")
        if self._known:
            lowest = self._ranked(str(best.technique), known=False)[0]
            ratio = self._ratio(best, lowest, known=False) if lowest != best else None
            if ratio is not None and ratio.outcome == "against":
                said.append(
                    f"Over all words, where <unk> counts as a word, {lowest.label} is lower: "
                    f"{self._number(lowest, False):.1f} against {self._number(best, False):.1f}."
                )
        if not best.is_filled:
            said.append("No fill is lower than leaving the markers in; a release is of a fill.")
        found = self._found(str(best.technique))
        if found is not None and found < 1:
            said.append(
                f"{1 - found:.1%} of the labelled private words stay in clear; on your own text nobody has counted: "
                "'palimpsest preview' shows what it would mask."
            )
        said.append("How many masked words a strong attacker guesses has not been measured.")
        return said

    def _beside(self, technique: str, other: Condition, best: Condition) -> str:
        ratio = self._ratio(other, best)
        found = self._found(technique)
        clear = f", and leaves {1 - found:.1%} of the labelled private words in clear" if found is not None else ""
        told = " (not told apart)" if ratio is not None and ratio.outcome == "open" else ""
        masked = self._masked(technique)
        share = f" {masked:.1%} of the words" if masked is not None else ""
        name = technique_name(technique)
        return f"The {name} masks{share}{clear}: there {other.label} is lowest, {self._number(other):.1f}{told}."

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
        if unknown > _MANY_UNKNOWN:
            said.append(
                f"{unknown:.0%} of the test words are unknown to the language model, so perplexities say little."
            )
        masked = self._masked(str(best.technique))
        if masked is not None and masked > _MANY_MASKED:
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

    def _where(self, cell: Cell) -> list[tuple[str, str]]:
        fill, model = self._report(fill_report(cell)), self._report(training_report(cell))
        found = [
            (name, next(iter(report["outputs"]), "")) for name, report in (("text", fill), ("model", model)) if report
        ]
        if fill is None:
            return found
        release = shlex.join(["palimpsest", "release", cell.path, "--name", f"{cell.dataset}_1"])
        return [*found, ("to let it leave", release)]

    def _report(self, path: Any) -> Mapping[str, Any] | None:
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
        if best is not None and all(_is_below(experiment, best, other, known) for other in mine if other != best):
            found[technique] = best.method, best.filler
    return found


def _is_below(experiment: Experiment, best: Condition, other: Condition, known: bool) -> bool:
    compared = experiment.compare(best, other, "below", known=known)
    return isinstance(compared, Comparison) and compared.outcome == "for"


def _names(conditions: Sequence[Condition]) -> str:
    *first, last = (condition.label for condition in conditions)
    return f"{', '.join(first)} and {last}" if first else last
