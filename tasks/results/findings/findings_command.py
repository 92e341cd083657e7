"""Hold the paper's eight claims against results/summary.json, one verdict each, with the numbers.

A claim is judged by differences between cells of the same seed and their intervals: a paired bootstrap over the test
sentences, from the scores that evaluation wrote, and the spread over seeds where there are several. The verdicts are
confirmed, not confirmed, contradicted, and not tested where the cells that a claim is about are missing or cannot be
compared.

Beyond the claims it says how much of the gap between Baseline1 and Oracle each way of filling closes, which is the
best for each technique, and how many masked words it happens to write, beside guessing by frequency. Data sets with
speech have a table of word error rates in the shape of the paper's Table 6, and what can be won with n-best lists at
all. What models were made to forget (palimpsest compare-unlearning) stands behind it, with the claims of corpus inverse
distillation.

example:
  palimpsest findings --output findings.md
"""

from typing import Annotated

from tasks.options import WRITE, Command, Options
from tasks.results.summary.summary_file import SUMMARY_FILE

SUMMARY = "hold the paper's claims against a summary, one verdict each"


class FindingsOptions(Options):
    """What is written."""

    output: Annotated[str | None, WRITE] = None
    """write the findings as Markdown"""


def run(options: FindingsOptions) -> None:
    """Judge, write, and say the verdicts."""
    from pathlib import Path

    from tasks.files.atomic_file import atomic_writer
    from tasks.language_model.settings import EvaluationSettings
    from tasks.results.findings.findings_beyond import beyond
    from tasks.results.findings.findings_claims import findings
    from tasks.results.findings.findings_comparison import Experiment
    from tasks.results.findings.findings_page import findings_page
    from tasks.results.findings.findings_speech import spoken_datasets
    from tasks.results.forgetting import by_dataset, read_forgetting
    from tasks.results.report_index import REPORTS
    from tasks.results.summary.summary_file import read_summary

    evaluation = EvaluationSettings()
    rows = read_summary(SUMMARY_FILE)
    experiment = Experiment(rows, Path(SUMMARY_FILE).parent / "scores", evaluation)
    claims, known, more = findings(experiment), findings(experiment, known=True), beyond(experiment)
    seeds = {row["seed"] for row in rows if row["seed"] is not None}
    spoken = spoken_datasets(rows)
    forgotten = by_dataset(read_forgetting(REPORTS))
    counts = {"cells": len(rows), "seeds": len(seeds)}
    page = findings_page(claims, known, more, spoken, forgotten, **counts, confidence=evaluation.confidence)
    if options.output:
        with atomic_writer(options.output) as stream:
            stream.write(page)
    width = max(len(finding.verdict) for finding in claims)
    for finding in claims:
        print(f"{finding.number}. {finding.verdict:<{width}}  {finding.claim}")
    if options.output:
        print(f"findings in {options.output}")


COMMAND = Command(FindingsOptions, run)
