"""The review in a terminal, for a machine reached by ssh: words have numbers, and a line of text marks them."""

import re
import time

from rich.console import Console
from rich.text import Text

from dashboards.review.status import bound_lines
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.words import word_spans
from tasks.errors import ParameterError
from tasks.review.reading import Reading
from tasks.review.record import MARK_CLASSES, Mark
from tasks.spelling import nearest

HELP = """Enter: save as shown. 3 PERSON: word 3. 5-6 LOCATION d: words 5 and 6. 4 -: no mark. Commas between several.
Classes may be cut: 3 per. d: direct, q: quasi; without them the class decides. u: previous line. x: end."""
_PART = re.compile(r"(\d+)(?:-(\d+))?\s+(-|[A-Za-z]+)(?:\s+([dq]))?")


def read_in_terminal(reading: Reading) -> None:
    """Show line after line and record the typed marks, until the reading or the input ends."""
    console = Console(highlight=False)
    console.print(f"{reading.corpus}, {reading.technique}. You are recorded as {reading.reviewer!r}.", markup=False)
    if reading.suggestions:
        console.print(
            "Words that the reference reader finds are marked already. Check each of them; they can bias you."
        )
    console.print(HELP, markup=False)
    while (line := reading.next_line()) is not None:
        if not _read_line(reading, line, console):
            break
    else:
        console.print("All lines that were asked for are read and saved.")
    for said in bound_lines(reading):
        console.print(said, markup=False)


def _read_line(reading: Reading, line: int, console: Console) -> bool:
    """Whether the reading continues."""
    shown, began = reading.shown(line), time.monotonic()
    spans = word_spans(reading.lines[line])
    marks = {(w["start"], w["end"]): Mark(w["start"], w["end"], **w["mark"]) for w in shown["words"] if w["mark"]}
    while True:
        _print(shown, marks, console)
        try:
            typed = console.input("> ").strip()
        except EOFError:
            return False
        if typed in ("x", "u"):
            if typed == "u":
                reading.undo()
            return typed == "u"
        if not typed:
            reading.save(line, [marks[span] for span in spans if span in marks], time.monotonic() - began)
            return True
        try:
            changed = parse(typed, spans)
        except ParameterError as error:
            console.print(str(error), style="bold", markup=False)
            continue
        marks = {span: mark for span, mark in (marks | changed).items() if mark is not None}


def parse(typed: str, spans: list[tuple[int, int]]) -> dict[tuple[int, int], Mark | None]:
    """The marks in a typed line, ``None`` for a word without a mark.

    Raises ``ParameterError`` for an unknown instruction, word number or class.
    """
    found: dict[tuple[int, int], Mark | None] = {}
    for part in typed.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ParameterError(f"{part.strip()!r} is not understood. {HELP}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= len(spans):
            raise ParameterError(f"the line has words 1 to {len(spans)}, not {first} to {last}.")
        label = _label(match[3])
        for start, end in spans[first - 1 : last]:
            direct = match[4] == "d" if match[4] else label in DIRECT_IDENTIFIERS
            found[start, end] = None if label is None else Mark(start, end, label, direct)
    return found


def _label(typed: str) -> str | None:
    if typed == "-":
        return None
    fitting = [name for name in MARK_CLASSES if name.startswith(typed.upper())]
    if len(fitting) != 1:
        raise ParameterError(
            f"{typed!r} is no class{nearest(typed.upper(), MARK_CLASSES)}. Classes: {', '.join(MARK_CLASSES)}."
        )
    return fitting[0]


def _print(shown: dict, marks: dict[tuple[int, int], Mark], console: Console) -> None:
    console.rule(f"line {shown['line'] + 1}" + (", saved before" if shown["saved"] else ""))
    for other in shown["before"]:
        console.print(Text(other, "dim"))
    text = Text()
    for number, word in enumerate(shown["words"], start=1):
        mark = marks.get((word["start"], word["end"]))
        text.append(word["gap"]).append(f"{number}:", "dim")
        # Brackets and braces show without colour which words are masked and marked.
        text.append(f"[{word['text']}]" if word["masked"] else word["text"], "reverse" if word["masked"] else "")
        if mark:
            text.append(f"{{{mark.label} {'d' if mark.direct else 'q'}}}", "bold underline")
    console.print(text.append(shown["rest"]))
    for other in shown["after"]:
        console.print(Text(other, "dim"))
