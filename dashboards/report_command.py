"""Write the report page, results/report.html, and say which cell to use.

One file without anything from elsewhere, to be opened in a browser, sent or printed: the tables with intervals, what
they say of the paper's claims, plots, the paper's tables beside ours, and how each number was made. It holds numbers
and made-up sentences, never text of a corpus.

example:
  palimpsest report --output results/report.html
"""

from pathlib import Path
from typing import Annotated

from tasks.errors import ParameterError
from tasks.files.atomic_file import atomic_writer
from tasks.options import READ, WRITE, Command, Options
from tasks.results.report_index import REPORTS
from tasks.results.summary.summary_file import SUMMARY_FILE

SUMMARY = "write the report page, one HTML file"


class ReportOptions(Options):
    """What is read and written."""

    summary: Annotated[str, READ] = SUMMARY_FILE
    """rows of 'palimpsest summarise'"""
    reports: Annotated[str, READ] = REPORTS
    """reports of the stages"""
    scores: Annotated[str | None, READ] = None
    """per-sentence scores (default: the folder 'scores' beside the summary); without them only differences from Oracle
    and Baseline1 have intervals"""
    output: Annotated[str, WRITE] = "results/report.html"
    """the page"""
    verdict: Annotated[str | None, WRITE] = None
    """which cell to use, and why, as text; it is printed in any case"""


def run(options: ReportOptions) -> None:
    """Render the page and write it, and print the verdict."""
    from dashboards.report_page import report_page
    from tasks.results.report_index import ReportIndex
    from tasks.results.summary.summary_file import read_summary
    from tasks.results.verdict import verdicts

    scores = Path(options.scores) if options.scores else Path(options.summary).parent / "scores"
    if options.scores and not scores.is_dir():
        raise ParameterError(f"--scores {options.scores!r} is no folder; 'palimpsest perplexity --scores' writes it")
    rows, index = read_summary(options.summary), ReportIndex(options.reports)
    found = verdicts(rows, index, scores)
    with atomic_writer(options.output) as stream:
        stream.write(report_page(rows, index, found, scores))
    said = "".join(f"{line}\n" for verdict in found for line in verdict.lines())
    if options.verdict is not None:
        with atomic_writer(options.verdict) as stream:
            stream.write(said)
    print(f"{said}report page in {options.output}")


COMMAND = Command(ReportOptions, run)
