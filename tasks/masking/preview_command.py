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
from typing import IO, Annotated

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.masking.preview import Piece, PreviewCounts, PreviewedLine, counted_reasons, why
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import Finding, KeptWord
from tasks.masking.techniques import TECHNIQUES_HELP, AnyTechnique, settings_named
from tasks.options import READ, READ_STREAM, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

_STYLES = {
    "MASK": "black on grey70",
    "PERSON": "black on orange1",
    "LOCATION": "black on sky_blue1",
    "ORGANISATION": "black on light_green",
    "DATE": "black on khaki1",
    "NUMBER": "black on plum1",
    "MONEY": "black on gold1",
    "CONTACT": "black on aquamarine1",
    "IDENTIFIER": "black on light_coral",
    "GROUP": "black on light_steel_blue1",
    "WORK": "black on thistle1",
    "MISCELLANEOUS": "black on wheat1",
}
_INDENT = " " * 7


class TerminalPreview:
    """Writes previewed lines, and at the end what was counted."""

    def __init__(self, stream: IO[str], *, all_words: bool) -> None:
        """``all_words``: kept words get a row as well."""
        from rich.console import Console

        class PlainConsole(Console):
            def on_broken_pipe(self) -> None:
                """Rich would exit with status 1; the command line says what a closed pipe means, for all commands."""
                raise BrokenPipeError

        self._console = PlainConsole(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._all_words = all_words

    def write_line(self, line: PreviewedLine) -> None:
        """A line, the same line masked, and a row for each of its masked words."""
        from rich.text import Text

        text = Text()
        text.append(f"{line.number:>5}  ", style="dim")
        for piece in line.pieces:
            text.append(piece.text, style=_STYLES[piece.word.label] if isinstance(piece.word, Finding) else "")
        self._console.print(text)
        if any(isinstance(piece.word, Finding) for piece in line.pieces):
            self._console.print(Text(f"{_INDENT}{line.masked}", style="dim"))
        if line.characters_left_out:
            self._console.print(
                f"{_INDENT}... {line.characters_left_out:,} characters more, with {line.words_left_out:,} masked words"
            )
        rows = [
            (piece, piece.word)
            for piece in line.pieces
            if piece.word is not None and (self._all_words or isinstance(piece.word, Finding))
        ]
        widths = [max((len(_columns(*row)[column]) for row in rows), default=0) for column in range(3)]
        for piece, word in rows:
            shown, label, marker = (
                column.ljust(width) for column, width in zip(_columns(piece, word), widths, strict=True)
            )
            style = _STYLES[word.label] if isinstance(word, Finding) else ""
            self._console.print(
                Text.assemble(
                    f"{_INDENT}  ", (shown, "bold" if style else "dim"), "  ", (label, style), f"  {marker}  "
                ),
                Text(why(word), style="dim"),
                sep="",
            )
        self._console.print()

    def write_counts(self, counts: PreviewCounts) -> None:
        """How much was masked, and for which reasons."""
        share = "none" if counts.masked_fraction is None else f"{counts.masked_fraction:.1%}"
        self._console.print(
            f"{counts.masked_words:,} of {counts.words:,} words masked ({share}) in {counts.lines:,} lines"
        )
        for label, _, reason, number in counted_reasons(counts):
            self._console.print(f"{number:>7,}  {label:<13}  {reason}")


def _columns(piece: Piece, word: Finding | KeptWord) -> tuple[str, str, str]:
    """Word, class and marker."""
    return (piece.text, word.label, piece.marker) if isinstance(word, Finding) else (piece.text, "kept", "")


SUMMARY = "show which words a technique would mask, and why"


class PreviewFiles(StageFiles):
    """What a preview reads and writes, and how much it shows."""

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
    """Show the first lines of a text as a technique sees them; errors as of ``mask``."""
    from tasks.corpora.languages import WatchedText
    from tasks.corpora.text_lines import empty_text, read_lines, refuse_no_sentences, standard_output
    from tasks.languages.word_lists import codes_of
    from tasks.masking.preview import PreviewCounts, preview_lines

    refuse_no_sentences(files.input)
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
    languages = codes_of(files.languages) if files.languages else technique.mixes
    for line in preview_lines(technique, text, settings.markers, counts, languages):
        terminal.write_line(line)
        if files.html:
            shown.append(line)
    if counts.lines == counts.empty_lines:
        raise empty_text(files.input)
    terminal.write_counts(counts)
    if files.html:
        from tasks.files.atomic_file import atomic_writer
        from tasks.masking.preview import Previewed, preview_page

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
