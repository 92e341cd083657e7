"""Write the references of a test set as a text, one a line, to mask them.

The lines have the order of the manifest or of the n-best lists. 'palimpsest word-error-rate
--sidecar' expects the sidecar of a technique in this order. The text is private.

example:
  palimpsest reference-text --references test/manifest.jsonl --output test.txt
"""

import sys
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.corpora.text_lines import write_lines
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings
from tasks.speech.word_errors.references import read_references, reference_lines

SUMMARY = "write the references of a test set as a text"


class ReferenceFiles(StageFiles):
    """The references, and the file for their text."""

    references: Annotated[str, READ]
    """manifest or n-best lists with the references"""
    output: Annotated[str, WRITE]
    """file for the text"""


def reference_text(settings: Settings, files: ReferenceFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write the lines."""
    written = write_lines(files.output, reference_lines(read_references(files.references)), private=True)
    print(f"{written:,} references written", file=sys.stderr)  # the output may be a pipe
    return Report().measure(references=written)


COMMAND = StageCommand("reference-text", reference_text, Settings, ReferenceFiles, section={})
