"""Write the report page, results/report.html, and say which cell to use.

One file without anything from elsewhere, to be opened in a browser, sent or printed: the tables with intervals, what
they say of the paper's claims, plots, the paper's tables beside ours, and how each number was made. It holds numbers
and made-up sentences, never text of a corpus.

example:
  palimpsest report --output results/report.html
"""

from pathlib import Path
from typing import Annotated

from tasks.files.atomic_file import atomic_writer
from tasks.options import READ, WRITE, Command, Options
from tasks.results.summary.summary_file import SUMMARY_FILE

SUMMARY = "write the report page, one HTML file"


class ReportOptions(Options):
    """What is read and written."""

    summary: Annotated[str, READ] = SUMMARY_FILE
    """rows of 'palimpsest summarise', beside them the folder 'reports', and 'scores': without scores only differences
    from Oracle and Baseline1 have intervals"""
    output: Annotated[str, WRITE] = "results/report.html"
    """the page; beside it verdict.txt says which cell to use, and why, as is printed"""


def run(options: ReportOptions) -> None:
    """Render the page and write it, and print the verdict."""
    from dashboards.report_page import report_page
    from tasks.results.report_index import ReportIndex
    from tasks.results.summary.summary_file import read_summary
    from tasks.results.verdict import verdicts

    folder = Path(options.summary).parent
    scores = folder / "scores"
    rows, index = read_summary(options.summary), ReportIndex(folder / "reports")
    found = verdicts(rows, index, scores)
    with atomic_writer(options.output) as stream:
        stream.write(report_page(rows, index, found, scores))
    said = "".join(f"{line}\n" for verdict in found for line in verdict.lines())
    with atomic_writer(Path(options.output).with_name("verdict.txt")) as stream:
        stream.write(said)
    print(f"{said}report page in {options.output}")


COMMAND = Command(ReportOptions, run)
