"""Templates: text with slots, such as ``My name is {PERSON:1} and I live in {CITY}, {COUNTRY}.``

A slot is ``{KIND}``, ``{KIND:NUMBER}`` or either with modifiers after a bar, ``{FIRST_NAME:1|lower}``. Slots of one
number refer to one thing: the same person, country or value. Modifiers: ``lower``, ``upper``, ``hashtag`` (without
spaces, after ``#``), ``words=3`` (a value of that many words, if the kind has one). A literal brace is doubled: ``{{``,
``}}``; ``\\n`` and ``\\r`` are line ends, ``\\\\`` a backslash, ``\\#`` a number sign.

A templates file is UTF-8 text, one template a line; blank lines and lines that start with ``# `` are left out.
"""

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import CorpusError
from tasks.spelling import nearest

NAMED_PROBLEMS = 20
"""Most bad templates that an error names."""
_SLOT = re.compile(r"([A-Z][A-Z_0-9]*)(?::([0-9]{1,3}))?(?:\|([a-z0-9=,]+))?")
_MODIFIER = re.compile(r"lower|upper|hashtag|words=[1-9][0-9]?")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "#": "#", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value."""

    kind: str
    """Kind of value, a key of ``tasks.labelled_text.slots.SLOT_LABELS``."""
    thing: int | None = None
    """Number that slots for one thing share; ``None``: the thing of this slot only."""
    modifiers: tuple[str, ...] = ()
    """Changes of the value's form."""

    def __str__(self) -> str:
        thing = "" if self.thing is None else f":{self.thing}"
        modifiers = "|" + ",".join(self.modifiers) if self.modifiers else ""
        return f"{{{self.kind}{thing}{modifiers}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """One template; ``str()`` gives the line that ``parse_template`` reads."""

    pieces: tuple[str | Slot, ...]
    """Literal text (never empty) and slots, in order."""

    def __str__(self) -> str:
        line = "".join(str(piece) if isinstance(piece, Slot) else escape_literal(piece) for piece in self.pieces)
        return "\\" + line if _is_comment(line) else line

    @property
    def slots(self) -> list[Slot]:
        """The slots, in order."""
        return [piece for piece in self.pieces if isinstance(piece, Slot)]

    @property
    def literal(self) -> str:
        """The text outside the slots."""
        return "".join(piece for piece in self.pieces if isinstance(piece, str))

    @property
    def folded(self) -> str:
        """The template without case, punctuation and digits: near duplicates are equal.

        A run of slots counts as one slot of any kind, so ``{FIRST_NAME} called!`` and ``{TITLE} {LAST_NAME} called``
        are near duplicates too.
        """
        words: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, Slot):
                if not words or words[-1] != "{}":
                    words.append("{}")
            else:
                words += re.findall(r"[^\W\d_]+", piece.casefold())
        return " ".join(words)

    @property
    def identity(self) -> str:
        """Twelve hexadecimal digits that name the template, the same for near duplicates."""
        return hashlib.sha256(self.folded.encode("utf-8")).hexdigest()[:12]


def escape_literal(text: str) -> str:
    """Literal text escaped for a template."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("{", "{{").replace("}", "}}")


def _is_comment(line: str) -> bool:
    return line.startswith("# ") or line == "#"


def parse_template(line: str, kinds: Collection[str]) -> Template:
    """One template; ``ValueError`` for braces that do not match, an unknown escape, kind or modifier."""
    pieces: list[str | Slot] = []
    for literal, field, number, conversion in Formatter().parse(line):
        if pieces and isinstance(pieces[-1], str):
            pieces[-1] += literal
        elif literal:
            pieces.append(literal)
        if field is not None:
            pieces.append(
                _slot(field + (f":{number}" if number else "") + (f"!{conversion}" if conversion else ""), kinds)
            )
    if not "".join(map(str, pieces)).strip():
        raise ValueError("is empty")
    return Template(tuple(_ESCAPE.sub(_unescaped, piece) if isinstance(piece, str) else piece for piece in pieces))


def _unescaped(match: re.Match[str]) -> str:
    if match.group(1) not in _ESCAPED:
        raise ValueError("a single backslash; write it twice")
    return _ESCAPED[match.group(1)]


def _slot(text: str, kinds: Collection[str]) -> Slot:
    match = _SLOT.fullmatch(text)
    if not match:
        raise ValueError("a slot is {KIND}, {KIND:1} or {KIND:1|lower}; a literal brace is doubled")
    kind, thing, modifiers = match.groups()
    if kind not in kinds:
        raise ValueError(f"unknown kind of slot {kind!r}{nearest(kind, kinds)}")
    listed = tuple(modifiers.split(",")) if modifiers else ()
    unknown = [modifier for modifier in listed if not _MODIFIER.fullmatch(modifier)]
    if unknown:
        raise ValueError(f"unknown modifier {unknown[0]!r}; allowed: lower, upper, hashtag, words=NUMBER")
    return Slot(kind, int(thing) if thing else None, listed)


def read_templates(path: str | Path, kinds: Collection[str]) -> list[Template]:
    """All templates of a file.

    Raises ``CorpusError`` with every problem (the first 20, and the count), each with its line, and if the file has no
    template.
    """
    templates: list[Template] = []
    problems: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or _is_comment(line):
            continue
        try:
            templates.append(parse_template(line, kinds))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        named = "; ".join([*problems[:NAMED_PROBLEMS], *(["and more"] if problems[NAMED_PROBLEMS:] else [])])
        raise CorpusError(f"templates file {str(path)!r}: {len(problems)} bad: {named}")
    if not templates:
        raise CorpusError(f"templates file {str(path)!r} holds no template; write one a line")
    return templates


def write_templates(path: str | Path, templates: Iterable[Template]) -> int:
    """Write one template a line, mode 0600 since they are learned from private text; return their number."""
    return write_lines(path, map(str, templates), private=True)
