"""The format of a masked line: text with markers, ``[MASK]`` or a class such as ``[PERSON]``.

A marker may name the language of its word as well: ``[MASK:es]``.

A text of a user may hold such a string already. It is escaped, not confused: one backslash goes behind its
opening bracket (``[MASK]`` becomes ``[\\MASK]``, ``[\\MASK]`` becomes ``[\\\\MASK]``), and unescaping takes one
away. So ``unescape(escape(text)) == text`` for every text, and an escaped text holds no marker.
"""

import re
from dataclasses import dataclass

MASK = "MASK"
CLASSES = (
    MASK,
    "PERSON",
    "LOCATION",
    "ORGANISATION",
    "DATE",
    "NUMBER",
    "MONEY",
    "CONTACT",
    "IDENTIFIER",
    "GROUP",
    "WORK",
    "MISCELLANEOUS",
)
"""Every class a marker can have. ``MASK`` is the class of the paper's marker: masked, class unknown."""
DIRECT_IDENTIFIERS = frozenset(("PERSON", "CONTACT", "IDENTIFIER"))
"""Classes of words that say by themselves who is meant. All others are quasi-identifiers, which say it together (Pilán
et al. 2022, "The Text Anonymization Benchmark", section 3)."""

_NAMES = "|".join(CLASSES)
_LANGUAGE = "[a-z]{2,3}(?:-[A-Z][a-z]{3})?"
MARKER_PATTERN = re.compile(rf"\[({_NAMES})(?::({_LANGUAGE}))?\]")
_LITERAL = re.compile(rf"\[(\\*(?:{_NAMES})(?::{_LANGUAGE})?\])")
_ESCAPED = re.compile(rf"\[\\(\\*(?:{_NAMES})(?::{_LANGUAGE})?\])")


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker of a masked line; ``label`` is one of ``CLASSES``."""

    label: str = MASK
    language: str | None = None
    """Of the masked word (ISO 639), where the marker names it."""

    def __str__(self) -> str:
        return f"[{self.label}:{self.language}]" if self.language else f"[{self.label}]"


def escape(text: str) -> str:
    """Make raw text safe to stand beside markers; linear in the length of the text."""
    return _LITERAL.sub(r"[\\\1", text) if "[" in text else text


def unescape(text: str) -> str:
    """The inverse of ``escape``."""
    return _ESCAPED.sub(r"[\1", text) if "[\\" in text else text


def parse_masked(line: str) -> list[str | Marker]:
    """Split a masked line into pieces of the user's text (unescaped, never empty) and markers, in order."""
    pieces: list[str | Marker] = []
    position = 0
    for match in MARKER_PATTERN.finditer(line):
        if match.start() > position:
            pieces.append(unescape(line[position : match.start()]))
        pieces.append(Marker(*match.groups()))
        position = match.end()
    if position < len(line):
        pieces.append(unescape(line[position:]))
    return pieces


def count_markers(line: str) -> int:
    """How many markers a masked line holds."""
    return len(MARKER_PATTERN.findall(line)) if "[" in line else 0
