"""Finds what a release shows together with earlier releases of the same lines.

A word that one technique masks is unmasked by another one, so two releases of one text together show what neither shows
alone. Each line of private text is looked up in the private copies of all earlier releases, by its exact text. A line
that was edited between two releases counts as another line.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from tasks.corpora.sidecar import MaskedSpan, read_sidecar, write_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.privacy.ledger import Release

RAW, SIDECAR = "raw.txt", "sidecar.jsonl"
"""Files of a private copy. The text itself, since masked text and sidecar restore it anyway, but for the white space
between merged markers."""


@dataclass(slots=True)
class _Line:
    count: int = 0
    masked: set[tuple[int, int]] = field(default_factory=set)
    """Words that any release masks."""
    hidden: set[tuple[int, int]] | None = None
    """Words that every release masks."""

    def add(self, spans: Sequence[MaskedSpan]) -> None:
        places = {(span.start, span.end) for span in spans}
        self.masked |= places
        self.hidden = places if self.hidden is None else self.hidden & places


@dataclass(frozen=True, slots=True)
class SharedLines:
    """Earlier releases that hold lines of the new one."""

    lines: dict[str, int]
    """By the name of the release: how many lines with a masked word both have."""
    shown: int
    """Words that one of these releases, the new one among them, masks and another one does not."""
    masked: int
    """Words that any of them masks."""
    unknown: Sequence[str] = ()
    """Releases whose private copy is missing, so that nobody knows which lines they share."""
    by_digest: Mapping[bytes, _Line] = field(default_factory=dict)
    """The new one's lines, as all these releases have them."""

    @property
    def share(self) -> float:
        """Share of the masked words that all releases together show."""
        return self.shown / self.masked if self.masked else 0.0

    def write_hidden(self, raw: Path, sidecar: Path, to: Path) -> Path:
        """Write the sidecar of what all these releases together mask: of the new one's spans those that no earlier
        release shows. Releases that are ``unknown`` are left out."""

        def spans_of_lines() -> Iterator[list[MaskedSpan]]:
            for line, spans in zip(read_lines(raw), read_sidecar(sidecar), strict=True):
                hidden = self.by_digest[_digest(line)].hidden or ()
                yield [span for span in spans if (span.start, span.end) in hidden]

        write_sidecar(to, spans_of_lines())
        return to


def shared_lines(raw: Path, sidecar: Path, earlier: Iterable[Release], copies: Path) -> SharedLines:
    """The lines of a text that earlier releases hold too, by their private copies ``copies/NAME``.

    Words are counted at every line of the new text. A line that nobody masks a word of says nothing new and is not
    counted as shared.
    """
    ours: dict[bytes, _Line] = {}
    for digest, spans in _lines(raw, sidecar):
        line = ours.setdefault(digest, _Line())
        line.count += 1
        line.add(spans)
    shared: dict[str, int] = {}
    unknown: list[str] = []
    together: set[bytes] = set()
    for release in earlier:
        folder = copies / release.name
        if not folder.exists():
            unknown.append(release.name)
            continue
        seen: set[bytes] = set()
        for digest, spans in _lines(folder / RAW, folder / SIDECAR):
            if digest in ours:
                ours[digest].add(spans)
                seen.add(digest)
        count = sum(ours[digest].count for digest in seen if ours[digest].masked)
        if count:
            shared[release.name] = count
            together |= seen
    lines = [ours[digest] for digest in together]
    masked = sum(line.count * len(line.masked) for line in lines)
    shown = sum(line.count * len(line.masked - (line.hidden or set())) for line in lines)
    return SharedLines(shared, shown, masked, unknown, ours)


def _lines(raw: Path, sidecar: Path) -> Iterator[tuple[bytes, list[MaskedSpan]]]:
    """Each line's digest with what was masked in it."""
    for line, spans in zip(read_lines(raw), read_sidecar(sidecar), strict=True):
        yield _digest(line), spans


def _digest(line: str) -> bytes:
    return blake2b(line.encode(), digest_size=16).digest()
