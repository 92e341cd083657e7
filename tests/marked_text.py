"""Private text of a test, with what is masked in braces: ``{anna} saw {PERSON:bob}``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tasks.corpora.masked_text import Marker, escape
from tasks.corpora.sidecar import write_sidecar
from tasks.corpora.text_lines import write_lines
from tasks.masking.technique import Finding, MarkerStyle, Technique, masked_spans, write_markers

_MARKED = re.compile(r"\{(?:([A-Z]+):)?([^}]*)\}")


def unmarked(line: str) -> tuple[str, list[Finding]]:
    """The raw line and what is masked in it."""
    raw, findings, position = "", [], 0
    for match in _MARKED.finditer(line):
        raw += line[position : match.start()]
        findings.append(Finding(len(raw), len(raw) + len(match[2]), match[1] or "MASK", "test"))
        raw += match[2]
        position = match.end()
    return raw + line[position:], findings


def format_masked(pieces: Sequence[str | Marker]) -> str:
    """The inverse of ``parse_masked``: escapes the text pieces and writes the markers between them.

    Text pieces side by side are one text: what looks like a marker may begin in one and end in the next.
    """
    runs = groupby(pieces, lambda piece: isinstance(piece, Marker))
    joined = ((is_marker, "".join(map(str, run))) for is_marker, run in runs)
    return "".join(text if is_marker else escape(text) for is_marker, text in joined)


@dataclass(frozen=True)
class MaskedText:
    raw: Path
    masked: Path
    sidecar: Path

    @classmethod
    def write(cls, folder: Path, lines: Sequence[str], style: MarkerStyle = "mask") -> "MaskedText":
        folder.mkdir(parents=True, exist_ok=True)
        found = [unmarked(line) for line in lines]
        text = cls(folder / "raw.txt", folder / "text.txt", folder / "sidecar.jsonl")
        write_lines(text.raw, (raw for raw, _ in found))
        write_lines(text.masked, (write_markers(raw, findings, style) for raw, findings in found))
        write_sidecar(text.sidecar, (masked_spans(raw, findings, style) for raw, findings in found))
        return text

    def other(self, name: str, lines: Sequence[str]) -> Path:
        """Another file of as many lines beside it: a fill, or documents."""
        write_lines(self.raw.parent / name, lines)
        return self.raw.parent / name


class Names(Technique):
    """A tagger that finds these words: names, and by class others."""

    name = "names"

    def __init__(self, *names: str, **others: str) -> None:
        self._classes = dict.fromkeys(names, "PERSON") | {word: label for label, word in others.items()}

    def findings(self, lines: Sequence[str]) -> Iterator[tuple[str, list[Finding]]]:
        for line in lines:
            found = (match for match in re.finditer(r"\w+", line) if match[0] in self._classes)
            yield line, [Finding(*match.span(), self._classes[match[0]], "names") for match in found]
