"""Mask and fill any amount of text exactly as a cell of the finished run was made.

'palimpsest init' draws a sample of a large text. This command makes the rest of it, or next month's
text, in the same way. Technique, filler, method, weights, counts and seed are those of the run.
Applied to the run's own sentences it gives the run's own bytes.

FILE has any form that 'palimpsest init' reads, and is cleaned in the same way. Sentences that
occur again are left out.

With --write-back, the output also has a copy of each file in which every text is filled. Nothing is
left out then, and all other fields stay as they are. It takes plain text, tables (CSV, TSV), JSON,
Parquet and subtitles.

The output is a private folder: text.txt is the result; raw.txt and sidecar.jsonl restore the
private text; report.json has numbers. Only 'palimpsest release CELL --applied FOLDER' makes of it
what may be shared. An interrupted call goes on where it was. The bytes do not depend on the number
of processes.

examples:
  palimpsest apply mail/crf/surrogate-1 --input mail.txt --output data/private/applied/mail
  palimpsest release mail/crf/surrogate-1 --applied data/private/applied/mail --name mail-2
"""

from typing import Annotated

from pydantic import Field

from tasks.corpora.own_text import OwnTextOptions, said_of
from tasks.options import READ, WRITE_FOLDER, Argument, Command

SUMMARY = "mask and fill any amount of text as a cell of the finished run was made"


class ApplyOptions(OwnTextOptions):
    """Options of the command: a cell, a text, and the folder of the result."""

    cell: Annotated[str | None, Argument(positional=True)] = None
    """cell of the finished run, as tables name it; that of a baseline gives the masked text (default: the one that the
    verdict recommends)"""
    input: Annotated[str, READ]
    """your text: a file, a folder, or the URL of a database"""
    output: Annotated[str, WRITE_FOLDER]
    """private folder for the result; best data/private/applied/CORPUS, which 'palimpsest forget' removes"""
    write_back: bool = False
    """also write copies of the files, with the fills in place of their texts"""
    processes: int | None = Field(default=None, ge=1)
    """processes at once (default: as many as cores and memory have room for; one on a GPU)"""


def run(options: ApplyOptions) -> None:
    """Apply the cell, and print numbers and the next step."""
    from pathlib import Path

    from tasks.applied.application import Application
    from tasks.applied.recipe import find_made
    from tasks.results.verdict import recommended_cell

    made = find_made(options.cell or recommended_cell())
    with options.reader_of(options.input) as settings:
        report = Application.of(made, settings, Path(options.output), write_back=options.write_back).carry_out(
            options.processes
        )
    print(
        f"{report['cell']} applied to {report['lines']:,} lines, {report['sample_lines']:,} of them in the run's "
        f"sample; left out: {said_of(report['left_out'])}\n"
        f"masked: {report['masked_fraction']:.1%} of the words, {report['sample_masked_fraction'] or 0:.1%} in the "
        f"sample; {report['lines_per_second']:,} lines/s"
    )
    if report["counted"]:
        print("Lines outside the sample were not counted: the noisy counts are the run's, and cost them no epsilon.")
    for name, fields in report["written_back"].items():
        print(f"written back: {options.output}/files/{name}" + (f"; unchanged: {', '.join(fields)}" if fields else ""))
    for warning in report["warnings"]:
        print(f"warning: {warning}")
    if made.filled:
        public = " --public-field FIELD" if any(report["written_back"].values()) else ""
        print(
            f"Next: palimpsest release {report['cell']} --applied {options.output} "
            f"--name {made.cell.dataset}-applied{public}"
        )


COMMAND = Command(ApplyOptions, run)
