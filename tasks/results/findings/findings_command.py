"""Test the paper's eight claims on results/summary.json, and give a verdict with numbers for each.

Claims are tested by differences between cells of the same seed, and their intervals. An interval is
a paired bootstrap over the test sentences, from the scores that evaluation wrote. If there are
several seeds, it includes the spread over seeds. The verdicts are:

- confirmed.
- not confirmed.
- contradicted.
- not tested: cells of the claim are missing or cannot be compared.

The findings also have:

- the share of the gap between Baseline1 and Oracle that each way of filling closes.
- the best way of filling for each technique.
- the masked words that each fill happens to write, compared with guessing by frequency.
- word error rates of data sets with speech, in the form of the paper's Table 6, and the gain that
  n-best lists allow.
- results of unlearning ('palimpsest compare-unlearning'), with the claims of corpus inverse
  distillation.

example:
  palimpsest findings --output findings.md
"""

from typing import Annotated

from tasks.options import WRITE, Command, Options
from tasks.results.summary.summary_file import SUMMARY_FILE

SUMMARY = "test the paper's claims on the results, and give a verdict for each"


class FindingsOptions(Options):
    """What is written."""

    output: Annotated[str | None, WRITE] = None
    """file for the findings as Markdown"""


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
