"""The preview in the terminal: colours where there is a terminal, the same text without them where there is none."""

from typing import IO

from tasks.masking.preview import Piece, PreviewCounts, PreviewedLine, counted_reasons, why
from tasks.masking.technique import Finding, KeptWord

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
