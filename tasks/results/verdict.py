"""The answer of an experiment: recommendation, quality, leakage, and whether it can be released now.

``tasks.results.choice`` has the rule of the recommendation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from tasks.errors import ParameterError
from tasks.language_model.settings import MANY_UNKNOWN, EvaluationSettings
from tasks.masking.settings import MANY_MASKED
from tasks.privacy.applied_text import whole_text
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell
from tasks.records.cells import audit_report, unmasked_report
from tasks.results.choice import Choice
from tasks.results.findings.findings_comparison import Condition, Experiment
from tasks.results.measures import measure
from tasks.results.readings import Reading, readings, stronger
from tasks.results.report_index import REPORTS, ReportIndex
from tasks.results.summary.summary_file import SUMMARY_FILE, read_summary
from tasks.results.tables import number_text
from tasks.results.titles import filler_name, in_sentence, method_name, technique_name, technique_phrase

if TYPE_CHECKING:
    from tasks.privacy.gate import Outcome

_WIDTH = 100
_FEW_TEST_SENTENCES, _FEW_TRAINED_SENTENCES = 1000, 3000
NOT_ATTACKED = (
    "Not tested: attackers who know more than the strongest rung that was run, persons with many lines, earlier rounds "
    "of a tuned filler, and attackers with several fills of one text."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Answer for one data set."""

    dataset: str
    cell: Cell
    use: str
    """``Mask with the allow list, fill with the log-linear method (MiniLM).``"""
    reason: str
    """Reason for the recommendation, in one sentence."""
    quality: Sequence[str]
    leakage: Sequence[Reading]
    notes: Sequence[str]
    """Basis of the leakage table, and its gaps."""
    command: str | None
    """The command that releases the cell; ``None`` if it would be refused."""
    missing: Sequence[str]
    """Missing requirements for a release."""
    sections: Mapping[str, Sequence[str]]
    """Details: headings with their sentences."""
    sample: str = ""
    """Sentence that the run saw a sample, if it did."""
    whole: str = ""
    """The command that applies the cell to the whole text then."""

    def lines(self) -> list[str]:
        """The lines for a terminal. A command is one line of any length, so that it can be copied."""
        found = [f"{self.dataset}: {self.use}", *_wrapped("  ", self.reason)]
        found += [*_wrapped("Quality: ", " ".join(self.quality)), *self._table()]
        found += [line for note in self.notes for line in _wrapped("  ", note)]
        found.append(f"Can it be released now? {f'Yes: {self.command}' if self.command else 'No.'}")
        found += [line for each in self.missing for line in _wrapped("  - ", each)]
        return [*found, *([f"{self.sample} {self.whole}"] if self.sample else [])]

    def _table(self) -> Iterator[str]:
        rows = [(f"  {each.attack}", each.result, each.chance, each.reading) for each in self.leakage]
        rows = [("Leakage", "result", "chance", "reading"), *rows] if rows else []
        first, second, third, _ = (
            (max(map(len, column)) for column in zip(*rows, strict=True)) if rows else (0, 0, 0, 0)
        )
        return (f"{row[0]:<{first}}  {row[1]:<{second}}  {row[2]:>{third}}  {row[3]}" for row in rows)


def _wrapped(start: str, text: str) -> list[str]:
    return wrap(
        text, _WIDTH, initial_indent=start, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def verdicts(
    all_rows: Sequence[Mapping[str, Any]],
    index: ReportIndex,
    scores: str | Path | None,
    limits: ReleaseSettings,
    outcome: Callable[[str], "Outcome"],
) -> list[Verdict]:
    """A verdict for each data set of a summary with fills.

    ``outcome``: the result of a release of a cell, by the cell's path.
    """
    rows = [row for row in all_rows if row["perplexity"] is not None]
    experiment = Experiment(rows, scores, EvaluationSettings())
    answers = (_Answer(name, experiment, index, limits) for name in dict.fromkeys(row["dataset"] for row in rows))
    return [answer.verdict(outcome) for answer in answers if answer.candidates]


def current_verdicts() -> list[Verdict]:
    """The verdicts of the project folder."""
    from tasks.parameters.parameter_file import read_parameters
    from tasks.privacy.gate import release_outcome

    parameters = read_parameters()
    scores = Path(SUMMARY_FILE).parent / "scores"
    rows, index = read_summary(SUMMARY_FILE), ReportIndex(REPORTS)
    return verdicts(rows, index, scores, parameters.release, lambda cell: release_outcome(cell, parameters))


def recommended_cell() -> str:
    """The cell that the verdict recommends, of the only data set; ``ParameterError`` if there are none or several."""
    cells = [verdict.cell.path for verdict in current_verdicts()]
    if len(cells) != 1:
        found = f"The verdict recommends {', '.join(cells)}. Name one of them" if cells else "No fill has been measured"
        raise ParameterError(f"CELL is missing. {found}. See: palimpsest report")
    return cells[0]


class _Answer(Choice):
    """The choice in sentences."""

    def verdict(self, outcome: Callable[[str], "Outcome"]) -> Verdict:
        best = self.best()
        cell, found = self.cell(best), outcome(self.cell(best).path)
        attackers = f"Attackers and further figures: {Path(REPORTS) / audit_report(cell)}."
        sections = {
            "Why this one": self._why(best),
            "Leakage": [attackers, NOT_ATTACKED],
            "Drawbacks": self._drawbacks(best),
            "Confidence": self._confidence(best),
        }
        sample, whole = self._whole(cell)
        return Verdict(
            dataset=self.dataset,
            cell=cell,
            use=f"Mask with {technique_phrase(str(best.technique))}, fill with {_fill_phrase(best)}.",
            reason=self._reason(best),
            quality=self._quality(best),
            leakage=list(readings(self.rows(best), self.limits.unmasked_direct)),
            notes=self._notes(best),
            command=found.command if found.passes else None,
            missing=found.missing,
            sections={heading: sentences for heading, sentences in sections.items() if sentences},
            sample=sample,
            whole=whole,
        )

    def _whole(self, cell: Cell) -> tuple[str, str]:
        """That the run saw a sample of a text in files, and the command for all of it; both empty if it did not."""
        corpus = self.report(Path("corpora") / self.dataset)
        left = corpus["measured"].get("left_out", {}).get("beyond_limit", 0) if corpus else 0
        if not corpus or not left or corpus["parameters"].get("kind") != "files":
            return "", ""
        seen = sum(corpus["measured"]["sentences"].values())
        return (
            f"The run saw a sample: {seen:,} of {seen + left:,} sentences. To mask and fill all of them:",
            whole_text(cell.path, self.dataset, corpus["parameters"]),
        )

    def _reason(self, best: Condition) -> str:
        within = "within all limits of a release with its model"
        if len(self.passing) == 1:
            return f"It is the only cell {within}."
        if self.passing:
            return f"Of {len(self.passing)} cells {within} it has the lowest perplexity."
        recall, by = measure("recall_direct").estimate(self.rows(best)), self.rows(best)[0].get("unmasked_by")
        by = "the reference reader" if by == "reference reader" else by
        whole = "" if recall is None else f" direct identifiers whole: {number_text(recall)} % by {by}"
        return f"No cell is {within}; this technique masks the most{whole}."

    def _quality(self, best: Condition) -> list[str]:
        numbers = {f"{'in-vocabulary' if self.known else 'all'} words": best}
        if "oracle" in self.references:
            numbers["raw text, Oracle"] = self.references["oracle"]
        if best.technique in self.baselines:
            numbers["masked, not filled, Baseline1"] = self.baselines[best.technique]
        said = ["perplexity " + ", ".join(f"{self.number(each):.1f} ({name})" for name, each in numbers.items()) + "."]
        gap = measure("gap_closed_known").estimate(self.rows(best))
        if gap is not None:
            said.append(f"It closes {number_text(gap, 0)} % of the gap from Baseline1 to Oracle (log scale).")
        return said

    def _notes(self, best: Condition) -> list[str]:
        counted, audit = self.report(unmasked_report(self.dataset)), self.report(audit_report(self.cell(best)))
        found = counted["measured"]["techniques"].get(best.technique) if counted is not None else None
        said = [f"Unmasked identifiers by {found['by']}: {found['basis']}."] if found else []
        if audit is None:
            return [*said, "Not attacked: add its method to 'audited' in its entry of compare.fills."]
        return [*said, *stronger(audit["parameters"])]

    def _why(self, best: Condition) -> list[str]:
        others = [each for each in self.passing or self.candidates if each != best]
        below = [other for other in others if self.way(best, other) == "for"]
        alike = [other for other in others if self.way(best, other) == "open"]
        said = [f"Its perplexity is significantly lower than that of {_names(below)}."] if below else []
        if alike:
            all_words = f"over all words it has {self.number(best, False):.1f}"
            said.append(f"Not significantly different: {_names(alike)}; {all_words}.")
        return [*said, *(["It needs no infilling model."] if best.filler is None else [])]

    def _drawbacks(self, best: Condition) -> list[str]:
        said = []
        pretrained, baseline = self.references.get("pretrained"), self.baselines.get(best.technique)
        for name, other in (("not adapting it", pretrained), ("leaving the mask tokens in (Baseline1)", baseline)):
            if other is not None and (way := self.way(best, other)) != "for":
                worse = "is worse than" if way == "against" else "is not significantly better than"
                numbers = f"{self.number(best):.1f} against {self.number(other):.1f}"
                said.append(f"For the language model this fill {worse} {name}: {numbers}.")
        lowest = self.ranked([each for each in self.candidates if each.technique == best.technique], known=False)[0]
        if lowest != best and self.way(best, lowest, known=False) == "against":
            numbers = f"{self.number(lowest, False):.1f} against {self.number(best, False):.1f}"
            said.append(f"Over all words, where <unk> counts as a word, {_named(lowest)} is lower: {numbers}.")
        masked = self.rows(best)[0]["masked_fraction"] or 0.0
        return [*said, *([f"More than half of the words are masked ({masked:.0%})."] if masked > MANY_MASKED else [])]

    def _confidence(self, best: Condition) -> list[str]:
        rows, corpus = self.rows(best), self.report(Path("corpora") / self.dataset)
        tested, unknown = max(row["sentences"] for row in rows), max(row["oov_rate"] or 0.0 for row in rows)
        trained = corpus["measured"]["sentences"]["train"] if corpus is not None else _FEW_TRAINED_SENTENCES
        said = {
            f"Few test sentences ({tested:,}): small differences are not seen.": tested < _FEW_TEST_SENTENCES,
            f"Few training sentences ({trained:,}): with more, another fill may be better.": (
                trained < _FEW_TRAINED_SENTENCES
            ),
            "One seed: another seed may change the order (compare.seeds: [1, 2, 3]).": len(rows) == 1,
            f"{unknown:.0%} of the test words are out of vocabulary: perplexities say little.": unknown > MANY_UNKNOWN,
        }
        return [sentence for sentence, holds in said.items() if holds]


def _fill_phrase(condition: Condition) -> str:
    """``the log-linear method (MiniLM)``."""
    filler = f" ({filler_name(condition.filler)})" if condition.filler else ""
    return f"the {in_sentence(method_name(condition.method))} method{filler}"


def _named(condition: Condition) -> str:
    return in_sentence(condition.label)


def _names(conditions: Sequence[Condition]) -> str:
    techniques = {each.technique for each in conditions}
    names = [_named(each) + f" ({technique_name(str(each.technique))})" * (len(techniques) > 1) for each in conditions]
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
