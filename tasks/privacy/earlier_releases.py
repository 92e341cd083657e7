"""What a release shows together with earlier ones of the same lines.

A word that one technique masks stands in clear where another one keeps it, so two releases of one text together show
what neither shows alone. Here each line of private text is looked up in the private copies of all earlier releases, by
its exact text: a line that was edited between two releases is another line, and this does not see that they speak of
the same thing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from tasks.corpora.sidecar import MaskedSpan, read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.privacy.ledger import Release

RAW, SIDECAR = "raw.txt", "sidecar.jsonl"
"""Files of a private copy. The text itself, since masked text and sidecar restore it anyway, but for the white space
between merged markers."""


@dataclass(frozen=True, slots=True)
class SharedLines:
    """Earlier releases that hold lines of the new one."""

    lines: dict[str, int]
    """By the name of the release: how many lines with a masked word both have."""
    shown: int
    """Words that one of all these releases, the new one among them, masks and another one leaves in clear."""
    masked: int
    """Words that any of them masks."""
    unknown: Sequence[str] = ()
    """Releases whose private copy is gone, as that of a corpus that was forgotten: what they share cannot be said."""

    @property
    def share(self) -> float:
        """Share of the masked words that all releases together show."""
        return self.shown / self.masked if self.masked else 0.0


@dataclass(slots=True)
class _Line:
    count: int = 0
    masked: set[tuple[int, int]] = field(default_factory=set)
    """Words that stand behind a marker anywhere."""
    hidden: set[tuple[int, int]] | None = None
    """Words that stand in clear nowhere."""

    def add(self, spans: Sequence[MaskedSpan]) -> None:
        places = {(span.start, span.end) for span in spans}
        self.masked |= places
        self.hidden = places if self.hidden is None else self.hidden & places


def shared_lines(raw: Path, sidecar: Path, earlier: Iterable[Release], copies: Path) -> SharedLines:
    """Hold a text and its sidecar against the private copies ``copies/NAME`` of earlier releases.

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
    return SharedLines(shared, shown, masked, unknown)


def _lines(raw: Path, sidecar: Path) -> Iterator[tuple[bytes, list[MaskedSpan]]]:
    """Each line's digest, which stands for it in memory, with what was masked in it."""
    for line, spans in zip(read_lines(raw), read_sidecar(sidecar), strict=True):
        yield blake2b(line.encode(), digest_size=16).digest(), spans
