"""Write the report page, results/report.html, and print which cell to release.

The page is one file that loads nothing from elsewhere. Open it in a browser, send it or print it.
It has tables with intervals, verdicts on the paper's claims, plots, the paper's tables with ours,
and the origin of each number. It contains numbers and made-up sentences, and never text of a
corpus.

results/metrics.json has the numbers of the recommended cell and the references, for 'dvc metrics'
and 'dvc exp show'.

example:
  palimpsest report
"""

from pathlib import Path

from tasks.files.atomic_file import atomic_writer
from tasks.options import Command, Options
from tasks.results.summary.summary_file import SUMMARY_FILE

SUMMARY = "write the report page, one HTML file"


def run(_: Options) -> None:
    """Render the page and write it, and print the verdict."""
    from dashboards.report_page import report_page
    from tasks.records.stage_report import write_json
    from tasks.results.report_index import ReportIndex
    from tasks.results.summary.flat_tables import key_figures
    from tasks.results.summary.summary_file import read_summary
    from tasks.results.verdict import current_verdicts

    folder = Path(SUMMARY_FILE).parent
    page, scores = folder / "report.html", folder / "scores"
    rows, index = read_summary(SUMMARY_FILE), ReportIndex(folder / "reports")
    found = current_verdicts()
    with atomic_writer(page) as stream:
        stream.write(report_page(rows, index, found, scores))
    said = "".join(f"{line}\n" for verdict in found for line in verdict.lines())
    with atomic_writer(page.with_name("verdict.txt")) as stream:
        stream.write(said)
    write_json(page.with_name("metrics.json"), key_figures(found, rows))
    print(f"{said}report page in {page}")


COMMAND = Command(Options, run)
