"""Make one table of all measured cells.

Which cells there are comes from the section 'compare' of params.yaml. For each of them the reports of masking,
filling, training and evaluation are read; a report that is missing is an error, never a shorter table. Each cell is
also compared with Oracle and with Baseline1 of the same technique and seed, sentence by sentence, by a paired
bootstrap over the scores that evaluation wrote. Word error rates of data sets with speech are compared in the same
way with those of the recogniser alone, with the pretrained model and with Oracle.

example:
  palimpsest summarise --output results/summary.json --markdown results/summary.md
"""

import argparse
from pathlib import Path

from tasks.files.atomic_file import atomic_writer
from tasks.parameters.parameter_file import DEFAULT_PATH, first_base, read_sections
from tasks.records.cells import expected_cells
from tasks.records.stage_report import write_json
from tasks.results.result_options import add_reports_option
from tasks.results.summary.summary_document import document, print_tables
from tasks.results.summary.summary_rows import summary_rows

SUMMARY = "make one table of all measured cells"
READS = ("reports", "scores")
WRITES = ("output", "markdown")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--params", default=DEFAULT_PATH, metavar="FILE", help="parameters of the experiment (default: %(default)s)"
    )
    add_reports_option(parser)
    parser.add_argument(
        "--scores",
        default="results/scores",
        metavar="FOLDER",
        help="scores of sentences, and word errors of utterances (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        default="results/summary.json",
        metavar="FILE",
        help="the rows as JSON, one per cell (default: %(default)s)",
    )
    parser.add_argument("--markdown", metavar="FILE", help="the table as Markdown")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON instead of the table")


def sections(arguments: argparse.Namespace) -> list[str]:
    """The key paths of ``params.yaml`` that the stage reads."""
    return ["compare", "evaluation", "tuned_fillers"]


def run(arguments: argparse.Namespace) -> None:
    """Read the reports, write the rows and the table, print the table."""
    settings = read_sections(arguments.params, sections(arguments))
    cells, tuned = expected_cells(settings["compare"]), settings["tuned_fillers"]
    bases = {name: first_base(name, tuned) for cell in cells if (name := str(cell.filler)) in tuned}
    rows = summary_rows(cells, arguments.reports, arguments.scores, settings["evaluation"], bases)
    write_json(arguments.output, rows)
    if arguments.markdown:
        with atomic_writer(Path(arguments.markdown)) as stream:
            stream.write(document(rows))
    if arguments.json:
        print(Path(arguments.output).read_text(encoding="utf-8"), end="")
    else:
        print_tables(rows)
        print(f"{len(rows)} cells in {arguments.output}")
