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

from typing import Annotated

from tasks.options import WRITE, Command, Options
from tasks.results.summary.summary_file import SUMMARY_FILE

SUMMARY = "test the paper's claims on the results, and give a verdict for each"


class FindingsOptions(Options):
    """Options of the findings."""

    output: Annotated[str | None, WRITE] = None
    """file for the findings as Markdown"""


def run(options: FindingsOptions) -> None:
    """Judge, write, and print the verdicts."""
    from pathlib import Path

    from tasks.files.atomic_file import atomic_writer
    from tasks.language_model.settings import EvaluationSettings
    from tasks.results.findings.findings_claims import findings
    from tasks.results.findings.findings_comparison import Experiment
    from tasks.results.findings.findings_page import findings_page
    from tasks.results.forgetting import by_dataset, read_forgetting
    from tasks.results.report_index import REPORTS
    from tasks.results.summary.summary_file import read_summary

    evaluation = EvaluationSettings()
    rows = read_summary(SUMMARY_FILE)
    experiment = Experiment(rows, Path(SUMMARY_FILE).parent / "scores", evaluation)
    claims, known = findings(experiment), findings(experiment, known=True)
    seeds = {row["seed"] for row in rows if row["seed"] is not None}
    forgotten = by_dataset(read_forgetting(REPORTS))
    counts = {"cells": len(rows), "seeds": len(seeds)}
    page = findings_page(claims, known, forgotten, **counts, confidence=evaluation.confidence)
    if options.output:
        with atomic_writer(options.output) as stream:
            stream.write(page)
    width = max((len(finding.verdict) for finding in claims), default=0)
    for finding in claims:
        print(f"{finding.number}. {finding.verdict:<{width}}  {finding.claim}")
    if not claims:
        print("this experiment tests none of the paper's claims")
    if options.output:
        print(f"findings in {options.output}")


COMMAND = Command(FindingsOptions, run)
