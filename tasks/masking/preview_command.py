"""Show what a technique would mask, and why, word by word.

Every line is shown with its masked words in colour (plain where the output is no terminal), then as it would be
written, then one row for each masked word: the word, its class, its marker, and the reason: the list it is not on, its
rank in a vocabulary, the entity type and the model or recogniser that tagged it, with a score where there is one.

The output is the private text itself, and so is the page of --html: it is one file that needs no network, readable by
its owner alone (mode 0600). Nothing else is written. 'palimpsest mask --help' explains the techniques.

Examples:
  palimpsest preview --technique allow_list --input mail.txt
  palimpsest preview --technique spacy --lines 200 --html preview.html --input mail.txt
  palimpsest preview --technique allow_list --set path=our_words.txt --all-words --input mail.txt
  palimpsest preview --params params.yaml --technique entity_tagger --input mail.txt
"""

import sys
from itertools import islice
from typing import Annotated

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.masking.settings import TechniqueSettings
from tasks.masking.techniques import TECHNIQUES_HELP, AnyTechnique, settings_named
from tasks.options import READ, READ_STREAM, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "show what a technique would mask, and why"


class PreviewFiles(StageFiles):
    """What a preview reads and writes, and how much it shows."""

    input: Annotated[str, READ_STREAM]
    """text, one sentence a line"""
    word_counts: Annotated[str | None, READ] = None
    """counts of generic text's words; vocabulary_threshold alone reads them"""
    html: Annotated[str | None, WRITE] = None
    """write the preview as a page as well; as private as the text"""
    lines: int = Field(default=20, ge=1)
    """how many lines are shown"""
    all_words: bool = False
    """say of kept words, too, why they are kept"""


def preview(settings: TechniqueSettings, files: PreviewFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Show the first lines of a text as a technique sees them; errors as of ``mask``."""
    from tasks.corpora.text_lines import empty_text, read_lines, standard_output
    from tasks.corpora.watched_text import WatchedText
    from tasks.masking.preview import PreviewCounts, preview_lines
    from tasks.masking.preview_terminal import TerminalPreview

    technique = settings.build(files.word_counts, resources.threads)
    notes = technique.announcements()
    for note in notes:
        print(note, file=sys.stderr)
    # A corpus may hold what the terminal's encoding does not.
    output = standard_output()
    output.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
    terminal = TerminalPreview(output, all_words=files.all_words)
    counts = PreviewCounts()
    shown = []
    text = WatchedText(islice(read_lines(files.input), files.lines))
    for line in preview_lines(technique, text, settings.markers, counts):
        terminal.write_line(line)
        if files.html:
            shown.append(line)
    if counts.lines == counts.empty_lines:
        raise empty_text(files.input)
    terminal.write_counts(counts)
    if files.html:
        from tasks.files.atomic_file import atomic_writer
        from tasks.masking.preview_page import Previewed, preview_page

        with atomic_writer(files.html, private=True) as stream:
            previewed = Previewed(str(cell.technique), shown, counts, notes)
            stream.write(preview_page(previewed.title, [previewed], all_words=files.all_words))
        print(f"{files.html}: holds the private text; mode 0600, for your eyes alone", file=sys.stderr)
    return Report(warnings=text.warnings(technique.name, technique.languages))


COMMAND = StageCommand(
    name="preview",
    stage=preview,
    settings=AnyTechnique,
    files=PreviewFiles,
    section="masking.{technique}",
    cell=("technique",),
    named_settings=settings_named,
    files_of_settings=lambda settings: settings.files,
    epilog=TECHNIQUES_HELP,
)
