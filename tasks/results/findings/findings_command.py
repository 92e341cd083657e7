"""Hold the paper's eight claims against a summary, one verdict each, with the numbers.

A claim is judged by differences between cells of the same seed and their intervals: a paired bootstrap over the test
sentences, from the scores that evaluation wrote, and the spread over seeds where there are several. The verdicts are
confirmed, not confirmed, contradicted, and not tested where the cells that a claim is about are missing or cannot be
compared.

Beyond the claims it says how much of the gap between Baseline1 and Oracle each way of filling closes, which is the
best for each technique, and how many masked words it happens to write, beside guessing by frequency. Data sets with
speech have a table of word error rates in the shape of the paper's Table 6, and what can be won with n-best lists at
all.

example:
  palimpsest findings --summary results/summary.json --output docs/findings.md
"""

from typing import Annotated

from tasks.options import READ, WRITE, Command, Options
from tasks.results.summary.summary_file import SUMMARY_FILE

SUMMARY = "hold the paper's claims against a summary, one verdict each"


class FindingsOptions(Options):
    """What is read and written."""

    summary: Annotated[str, READ] = SUMMARY_FILE
    """rows of 'palimpsest summarise', beside them the folder 'scores' that they were made from"""
    output: Annotated[str | None, WRITE] = None
    """write the findings as Markdown"""
    json_: bool = False
    """print the findings as JSON"""


def run(options: FindingsOptions) -> None:
    """Judge, write, and say the verdicts."""
    import json
    from pathlib import Path

    from tasks.files.atomic_file import atomic_writer
    from tasks.language_model.settings import EvaluationSettings
    from tasks.results.findings.findings_beyond import beyond
    from tasks.results.findings.findings_claims import findings
    from tasks.results.findings.findings_comparison import Experiment
    from tasks.results.findings.findings_page import findings_page
    from tasks.results.findings.findings_speech import spoken_datasets
    from tasks.results.summary.summary_file import read_summary

    evaluation = EvaluationSettings()
    rows = read_summary(options.summary)
    experiment = Experiment(rows, Path(options.summary).parent / "scores", evaluation)
    claims, known, more = findings(experiment), findings(experiment, known=True), beyond(experiment)
    seeds = {row["seed"] for row in rows if row["seed"] is not None}
    spoken = spoken_datasets(rows)
    counts = {"cells": len(rows), "seeds": len(seeds)}
    page = findings_page(claims, known, more, spoken, **counts, confidence=evaluation.confidence)
    if options.output:
        with atomic_writer(options.output) as stream:
            stream.write(page)
    if options.json_:
        document = {
            **counts,
            "claims": [finding.as_dict() for finding in claims],
            "claims_known_words": [finding.as_dict() for finding in known],
            "word_error_rates": [found.as_dict() for found in spoken],
            "beyond": more.as_dict(),
        }
        print(json.dumps(document, indent=1, allow_nan=False))
        return
    width = max(len(finding.verdict) for finding in claims)
    for finding in claims:
        print(f"{finding.number}. {finding.verdict:<{width}}  {finding.claim}")
    if options.output:
        print(f"findings in {options.output}")


COMMAND = Command(FindingsOptions, run)
