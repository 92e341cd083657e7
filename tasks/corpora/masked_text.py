"""The format of a masked line: text with markers, ``[MASK]`` or a class such as ``[PERSON]``.

A marker may name the language of its word as well: ``[MASK:es]``.

A user's text may contain such a string. It is escaped: one backslash goes after its opening bracket (``[MASK]`` becomes
``[\\MASK]``, ``[\\MASK]`` becomes ``[\\\\MASK]``), and unescaping removes one. So ``unescape(escape(text)) == text``
for every text, and an escaped text has no marker.
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
"""Every class of a marker. ``MASK`` is the class of the paper's marker: masked, class unknown."""
DIRECT_IDENTIFIERS = frozenset(("PERSON", "CONTACT", "IDENTIFIER"))
"""Classes of words that identify a person on their own. All others are quasi-identifiers, which identify a person
together (Pilán et al. 2022, "The Text Anonymization Benchmark", section 3)."""

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
    """Language of the masked word (ISO 639), if the marker names it."""

    def __str__(self) -> str:
        return f"[{self.label}:{self.language}]" if self.language else f"[{self.label}]"


def escape(text: str) -> str:
    """Escape raw text so that it can be joined with markers; linear in the length of the text."""
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
    """The number of markers in a masked line."""
    return len(MARKER_PATTERN.findall(line)) if "[" in line else 0
