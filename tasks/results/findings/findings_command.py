"""Test the paper's claims on results/summary.json, and give a verdict with numbers for each.

Claims are tested by ratios between cells of the same seed, and their intervals. An interval is a
paired bootstrap over the test sentences. Several seeds widen it by their spread. The verdicts are:

- confirmed.
- not confirmed.
- contradicted.

Claims that the experiment does not test are left out. The document also has the results of
unlearning ('palimpsest compare-unlearning'), with the claims of corpus inverse distillation.

example:
  palimpsest findings --output findings.md
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from tasks.files.atomic_file import atomic_writer
from tasks.language_model.settings import EvaluationSettings
from tasks.options import WRITE, Command, Options
from tasks.results.findings.findings_claims import CLAIMS, Finding, findings
from tasks.results.findings.findings_comparison import Experiment, Paired
from tasks.results.findings.findings_forgetting import forgetting_parts
from tasks.results.forgetting import by_dataset, read_forgetting
from tasks.results.grid import ABSENT, markdown, plain_grid, words
from tasks.results.report_index import REPORTS
from tasks.results.summary.summary_file import SUMMARY_FILE, read_summary
from tasks.results.titles import technique_name

SUMMARY = "test the paper's claims on the results, and give a verdict for each"
_OUTCOMES = {"for": "for", "against": "**against**", "open": "undecided"}
_COLUMNS = ("dataset", "technique", "first", "second", "seeds", "ratio", "claim", "ratio, known words", "claim")


class FindingsOptions(Options):
    """Options of the findings."""

    output: Annotated[str | None, WRITE] = None
    """file for the findings as Markdown"""


def run(options: FindingsOptions) -> None:
    """Judge, write, and print the verdicts."""
    evaluation, rows = EvaluationSettings(), read_summary(SUMMARY_FILE)
    experiment = Experiment(rows, Path(SUMMARY_FILE).parent / "scores", evaluation)
    claims = findings(experiment)
    if options.output:
        page = _page(rows, claims, findings(experiment, known=True), evaluation.confidence)
        with atomic_writer(options.output) as stream:
            stream.write(page)
    width = max((len(finding.verdict) for finding in claims), default=0)
    for finding in claims:
        print(f"{finding.number}. {finding.verdict:<{width}}  {finding.claim}")
    if not claims:
        print("this experiment tests none of the paper's claims")
    if options.output:
        print(f"findings in {options.output}")


def _page(
    summary: Sequence[Mapping[str, Any]], claims: Sequence[Finding], known: Sequence[Finding], confidence: float
) -> str:
    """The findings as Markdown, numbers only; ``claims`` count all words, ``known`` in-vocabulary words only."""
    seeds = len({row["seed"] for row in summary if row["seed"] is not None})
    by_number = {finding.number: finding for finding in known}
    verdicts = {number: finding.verdict for number, finding in by_number.items()}
    rows = [(f"{each.number}", each.claim, f"**{each.verdict}**", verdicts.get(each.number, ABSENT)) for each in claims]
    parts = [
        "# Findings",
        f"Made by `palimpsest findings` from {len(summary)} cells with {seeds} {'seed' if seeds == 1 else 'seeds'}. "
        f"A comparison counts if its {confidence:.0%} interval excludes the limit. The interval is a paired bootstrap "
        "over the test sentences. Several seeds widen it by their spread. *Confirmed*: every comparison is for the "
        "claim. *Contradicted*: more are against it than for it; for a claim on every method, any is. *Not confirmed*: "
        "anything between, or a comparison of the claim cannot be made.",
        "## The paper's claims",
        f"This experiment tests {len(claims)} of {len(CLAIMS)} claims; the others are left out.",
        markdown(plain_grid("", words("", "claim", "all words", "known words"), rows)) if rows else "",
    ]
    for finding in claims:
        other = by_number.get(finding.number)
        parts += [f"### {finding.number}. {finding.claim}", f"All words: **{finding.verdict}**. {finding.evidence}"]
        if other is not None and other.evidence != finding.evidence:
            parts.append(f"Known words: **{other.verdict}**. {other.evidence}")
        lines = list(_comparisons(finding.comparisons, other.comparisons if other is not None else ()))
        parts.append(markdown(plain_grid("", words(*_COLUMNS), lines)))
    parts += forgetting_parts(by_dataset(read_forgetting(REPORTS)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _comparisons(over_all: Sequence[Paired], over_known: Sequence[Paired]) -> Iterator[list[str]]:
    """A row each; the best fill over known words may be another, so some have numbers on one side only."""
    sides = [{each.place: each for each in side} for side in (over_all, over_known)]
    for place in dict.fromkeys([*sides[0], *sides[1]]):
        dataset, technique, first, second = place
        both = [side.get(place) for side in sides]
        row = [dataset, technique_name(technique), first, second, str(next(each.seeds for each in both if each))]
        for each in both:
            row += [_ratio(each), _OUTCOMES[each.outcome]] if each else [ABSENT, ABSENT]
        yield row


def _ratio(paired: Paired) -> str:
    """``0.934 [0.921, 0.948]``."""
    return f"{paired.ratio:.3f}" + ("" if paired.low is None else f" [{paired.low:.3f}, {paired.high:.3f}]")


COMMAND = Command(FindingsOptions, run)
