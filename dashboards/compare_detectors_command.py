"""Write tables and a plot that compare detectors, to show which one should mask your text.

The command reads the reports that 'palimpsest evaluate-masking' wrote below results/reports, for
several techniques and gold sets. It writes a table for each gold set to docs/detectors.md: F2 with
its interval, recall, precision, over-masking, speed, memory, size of the model.

A plot of F2 against speed goes to docs/detectors.svg. Tables and plot have numbers only, and never
text. If docs/detectors.md exists, only the text between these two lines is replaced:

  <!-- palimpsest compare-detectors: begin -->
  <!-- palimpsest compare-detectors: end -->

example:
  palimpsest evaluate-masking --technique spacy --gold gold.jsonl --report results/reports/spacy.json
  palimpsest evaluate-masking --technique presidio --gold gold.jsonl --report results/reports/presidio.json
  palimpsest compare-detectors
"""

from pathlib import Path

from tasks.errors import CorpusError
from tasks.files.atomic_file import atomic_writer
from tasks.options import Command, Options
from tasks.results.report_index import REPORTS

SUMMARY = "write tables and a plot that compare detectors"
BEGIN = "<!-- palimpsest compare-detectors: begin -->"
END = "<!-- palimpsest compare-detectors: end -->"


PAGE = "docs/detectors.md"
"""Page with the tables; the plot is next to it, with the ending .svg."""


def run(_: Options) -> None:
    """Read the reports, write tables and plot."""
    from dashboards.detectors import detector_plot, detector_results, detector_table
    from tasks.results.report_index import ReportIndex

    results = detector_results(ReportIndex(REPORTS).reports)
    if not results:
        raise CorpusError(
            "the reports hold no evaluation of masking; write some with 'palimpsest evaluate-masking --report FILE'"
        )
    page, plot = Path(PAGE), Path(PAGE).with_suffix(".svg")
    text = f"## Detectors\n\n![Token F2 against words per second, one panel per gold set]({plot.name})\n\n"
    text += detector_table(results)
    present = page.read_text(encoding="utf-8") if page.exists() else f"{BEGIN}\n{END}\n"
    document = between(present, BEGIN, END, text)
    if document is None:
        raise CorpusError(f"{PAGE!r} has no place for the tables; put the lines '{BEGIN}' and '{END}' into it")
    for path, content in ((plot, detector_plot(results)), (page, document)):
        with atomic_writer(path) as stream:
            stream.write(content)
    counts = len({result.technique for result in results}), len({result.gold_set for result in results})
    print(f"{counts[0]} techniques on {counts[1]} gold sets: tables in {PAGE}, plot in {plot}")


def between(page: str, begin: str, end: str, text: str) -> str | None:
    """A page with a text between two marks; ``None`` if it does not have both once, in this order."""
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(end) < page.index(begin):
        return None
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


COMMAND = Command(Options, run)
