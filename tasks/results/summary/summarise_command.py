"""Write one table of all measured cells.

The section compare of params.yaml defines the cells. The command reads the reports of masking,
filling, training and evaluation of each cell. A missing report is an error, so the table is always
complete.

Each cell is compared with Oracle and with Baseline1 of the same technique and seed. The comparison
is by sentence: a paired bootstrap over the scores that evaluation wrote. Word error rates of data
sets with speech are compared in the same way with three others. These are the recogniser alone, the
recogniser with the pretrained model, and the recogniser with Oracle.

The table goes to results/summary.json, results/summary.csv and results/summary.md. Its first parts are
printed.

example:
  palimpsest summarise
"""

from pathlib import Path

from tasks.files.atomic_file import atomic_writer
from tasks.options import Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.stage_report import write_json
from tasks.results.summary.flat_tables import summary_csv
from tasks.results.summary.summary_document import document, main_tables
from tasks.results.summary.summary_file import SUMMARY_FILE
from tasks.results.summary.summary_rows import summary_rows

SUMMARY = "write one table of all measured cells"
SECTIONS = ("compare", "evaluation", "tuned_fillers")
"""Key paths of ``params.yaml`` that the stage reads."""


def run(_: Options) -> None:
    """Read the reports, write the rows and the table, print the table."""
    settings = read_sections(DEFAULT_PATH, SECTIONS)
    rows = summary_rows(
        Path(SUMMARY_FILE).parent, settings["compare"], settings["evaluation"], settings["tuned_fillers"]
    )
    write_json(SUMMARY_FILE, rows)
    for ending, text in ((".md", document(rows)), (".csv", summary_csv(rows))):
        with atomic_writer(Path(SUMMARY_FILE).with_suffix(ending)) as stream:
            stream.write(text)
    print("\n".join(main_tables(document(rows))))
    print(f"{len(rows)} cells in {SUMMARY_FILE}")


COMMAND = Command(Options, run, lambda: SECTIONS)
