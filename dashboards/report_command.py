"""Write the report page: results/report.html.

One file without anything from elsewhere, to be opened in a browser, sent or printed: the tables with intervals, what
they say of the paper's claims, plots, the paper's tables beside ours, and how each number was made. It holds numbers
and made-up sentences, never text of a corpus.

example:
  palimpsest report --output results/report.html
"""

import argparse
from pathlib import Path

from tasks.errors import ParameterError
from tasks.files.atomic_file import atomic_writer
from tasks.results.result_options import add_reports_option, add_summary_option

SUMMARY = "write the report page, one HTML file"
READS = ("summary", "reports", "scores")
WRITES = ("output",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_summary_option(parser)
    add_reports_option(parser)
    parser.add_argument(
        "--scores",
        metavar="FOLDER",
        help="per-sentence scores (default: the folder 'scores' beside the summary); without them only differences "
        "from Oracle and Baseline1 have intervals",
    )
    parser.add_argument(
        "--output", default="results/report.html", metavar="FILE", help="the page (default: %(default)s)"
    )


def sections(arguments: argparse.Namespace) -> list[str]:
    """The page depends on no parameter: all settings come from the reports."""
    return []


def run(arguments: argparse.Namespace) -> None:
    """Render the page and write it."""
    from dashboards.report_page import report_page
    from tasks.results.report_index import ReportIndex
    from tasks.results.summary.summary_file import read_summary

    scores = Path(arguments.scores) if arguments.scores else Path(arguments.summary).parent / "scores"
    if arguments.scores and not scores.is_dir():
        raise ParameterError(f"--scores {arguments.scores!r} is no folder; 'palimpsest perplexity --scores' writes it")
    page = report_page(read_summary(arguments.summary), ReportIndex(arguments.reports), scores)
    with atomic_writer(arguments.output) as stream:
        stream.write(page)
    print(f"report page in {arguments.output}")
