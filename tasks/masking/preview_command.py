"""Show which words of a text a technique would mask, and why.

The preview has for each line:

- the line, with its masked words in colour, or without colour if the output is no terminal;
- the line as 'palimpsest mask' would write it;
- a row for each masked word, with the word, its class, its marker and the reason.

The reason depends on the technique. It is the list that lacks the word, the rank of the word in a
vocabulary, or the entity type. An entity type comes with the model or recogniser that found it, and
with its score if there is one.

The preview contains the private text itself. So does the page that --html writes: one file that
needs no network, and that only you can read (mode 0600). Nothing else is written.

Examples:
  palimpsest preview --technique allow_list --input mail.txt
  palimpsest preview --technique spacy --lines 200 --html preview.html --input mail.txt
  palimpsest preview --technique allow_list --set path=our_words.txt --all-words --input mail.txt
  palimpsest preview --params params.yaml --technique entity_tagger --input mail.txt
"""

import sys
from itertools import islice
from typing import IO, TYPE_CHECKING, Annotated

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.corpora.masked_text import CLASSES
from tasks.masking.preview import PreviewCounts, Previewed, PreviewedLine, preview_lines, preview_page, why
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import Finding
from tasks.masking.techniques import TECHNIQUES_HELP, AnyTechnique, settings_named
from tasks.options import READ, READ_STREAM, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from rich.console import Console

_COLOURS = (
    "grey70 orange1 sky_blue1 light_green khaki1 plum1 gold1 aquamarine1 light_coral light_steel_blue1 thistle1 wheat1"
).split()
_STYLES = {label: f"black on {colour}" for label, colour in zip(CLASSES, _COLOURS, strict=True)}
_INDENT = " " * 7


def _console(stream: IO[str]) -> "Console":
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            """Rich would exit with status 1; the command line handles a closed pipe for all commands."""
            raise BrokenPipeError

    return PlainConsole(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)


def _print_line(console: "Console", line: PreviewedLine, *, all_words: bool) -> None:
    """Print a line, the same line masked, and a row for each of its masked words (or of ``all_words``)."""
    from rich.text import Text

    text = Text()
    text.append(f"{line.number:>5}  ", style="dim")
    rows = []
    for piece in line.pieces:
        label = piece.word.label if isinstance(piece.word, Finding) else "kept"
        text.append(piece.text, style=_STYLES.get(label, ""))
        if piece.word is not None and (all_words or label != "kept"):
            rows.append(((piece.text, label, piece.marker), piece.word))
    console.print(text)
    if any(label != "kept" for (_, label, _), _ in rows):
        console.print(Text(f"{_INDENT}{line.masked}", style="dim"))
    widths = [max((len(columns[place]) for columns, _ in rows), default=0) for place in range(3)]
    for columns, word in rows:
        style = _STYLES.get(columns[1], "")
        shown, label, marker = (column.ljust(width) for column, width in zip(columns, widths, strict=True))
        console.print(
            Text.assemble(f"{_INDENT}  ", (shown, "bold" if style else "dim"), "  ", (label, style), f"  {marker}  "),
            Text(why(word), style="dim"),
            sep="",
        )
    console.print()


def _print_counts(console: "Console", counts: PreviewCounts) -> None:
    """Print how many words are masked, and for which reasons."""
    share = "none" if counts.masked_fraction is None else f"{counts.masked_fraction:.1%}"
    console.print(f"{counts.masked_words:,} of {counts.words:,} words masked ({share}) in {counts.lines:,} lines")
    for label, _, reason, number in counts.reasons:
        console.print(f"{number:>7,}  {label:<13}  {reason}")


SUMMARY = "show which words a technique would mask, and why"


class PreviewFiles(StageFiles):
    """Files that a preview reads and writes, and the amount that it shows."""

    input: Annotated[str, READ_STREAM]
    """text, one sentence a line"""
    word_counts: Annotated[str | None, READ] = None
    """word counts of generic text, for vocabulary_threshold only"""
    html: Annotated[str | None, WRITE] = None
    """file for the preview as a page; as private as the text"""
    lines: int = Field(default=20, ge=1)
    """number of lines to show"""
    all_words: bool = False
    """show all other words too, with the reason why they stay unmasked"""
    languages: str | None = None
    """languages of a mixed text, such as en,es; each word is shown with its language, detected in the lines shown"""


def preview(settings: TechniqueSettings, files: PreviewFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Show the first lines of a text as a technique masks them; errors as of ``mask``."""
    from tasks.corpora.languages import WatchedText
    from tasks.corpora.text_lines import empty_text, read_lines, refuse_no_sentences, standard_output
    from tasks.languages.word_lists import codes_of

    refuse_no_sentences(files.input)
    technique = settings.build(files.word_counts, resources.threads)
    notes = technique.announcements()
    for note in notes:
        print(note, file=sys.stderr)
    # A corpus may contain characters that the terminal's encoding lacks.
    output = standard_output()
    output.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
    console = _console(output)
    counts = PreviewCounts()
    shown = []
    text = WatchedText(islice(read_lines(files.input), files.lines))
    languages = codes_of(files.languages) if files.languages else technique.mixes
    for line in preview_lines(technique, text, settings.markers, counts, languages):
        _print_line(console, line, all_words=files.all_words)
        if files.html:
            shown.append(line)
    if counts.lines == counts.empty_lines:
        raise empty_text(files.input)
    _print_counts(console, counts)
    if files.html:
        from tasks.files.atomic_file import atomic_writer

        title = str(cell.technique)
        with atomic_writer(files.html, private=True) as stream:
            page = preview_page(title, [Previewed(title, shown, counts, notes)], all_words=files.all_words)
            stream.write(page)
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
