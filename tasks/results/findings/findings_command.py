"""Test the paper's claims on results/summary.json, and give a verdict with numbers for each.

Claims are tested by ratios between cells of the same seed, and their intervals. An interval is a
paired bootstrap over the test sentences and the seeds. The verdicts are:

- confirmed.
- not confirmed.
- contradicted.

Claims that the experiment does not test are left out.

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
from tasks.results.findings.findings_comparison import Experiment
from tasks.results.grid import markdown, plain_grid, words
from tasks.results.summary.summary_file import SUMMARY_FILE, read_summary
from tasks.results.titles import technique_name

SUMMARY = "test the paper's claims on the results, and give a verdict for each"
_OUTCOMES = {"for": "for", "against": "**against**", "open": "undecided"}


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
        with atomic_writer(options.output) as stream:
            stream.write(_page(rows, claims, findings(experiment, known=True), evaluation.confidence))
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
    parts = [
        "# Findings",
        f"Made by `palimpsest findings` from {len(summary)} cells with {seeds} {'seed' if seeds == 1 else 'seeds'}. "
        f"A comparison counts if its {confidence:.0%} interval excludes the limit. The interval is a paired bootstrap "
        "over the test sentences and the seeds. *Confirmed*: every comparison is for the claim. *Contradicted*: more "
        "are against it than for it; for a claim on every method, any is. *Not confirmed*: anything between, or a "
        "comparison of the claim cannot be made.",
        f"This experiment tests {len(claims)} of the paper's {len(CLAIMS)} claims; the others are left out.",
    ]
    for title, found in (("All words", claims), ("In-vocabulary words", known)):
        verdicts = [(f"{each.number}", each.claim, f"**{each.verdict}**", each.evidence) for each in found]
        compared = [row for each in found for row in _comparisons(each)]
        columns = ("claim", "dataset", "technique", "first", "second", "seeds", "ratio", "outcome")
        parts += [f"## {title}", markdown(plain_grid("", words("", "claim", "verdict", "evidence"), verdicts))]
        parts += ["### Comparisons", markdown(plain_grid("", words(*columns), compared))]
    return "\n\n".join(parts if claims else parts[:3]) + "\n"


def _comparisons(finding: Finding) -> Iterator[list[str]]:
    """A row each, with ``0.934 [0.921, 0.948]``."""
    for each in finding.comparisons:
        dataset, technique, first, second = each.place
        ratio = f"{each.ratio:.3f}" + ("" if each.low is None else f" [{each.low:.3f}, {each.high:.3f}]")
        start = [f"{finding.number}", dataset, technique_name(technique), first, second, str(each.seeds)]
        yield [*start, ratio, _OUTCOMES[each.outcome]]


COMMAND = Command(FindingsOptions, run)
