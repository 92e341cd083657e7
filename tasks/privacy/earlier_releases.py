"""What a release shows together with earlier ones of the same lines.

A word that one technique masks stands in clear where another one keeps it, so two releases of one text together show
what neither shows alone. Here each line of private text is looked up in the private copies of all earlier releases, by
its exact text: a line that was edited between two releases is another line, and this does not see that they speak of
the same thing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from tasks.audit.clear_text import Words, clear_share
from tasks.audit.figure import Figure
from tasks.corpora.sidecar import MaskedSpan, read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.privacy.ledger import Release

RAW, SIDECAR = "raw.txt", "sidecar.jsonl"
"""Files of a private copy. The text itself, since masked text and sidecar restore it anyway, but for the white space
between merged markers."""


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
    by_digest: Mapping[bytes, _Line] = field(default_factory=dict)
    """The new one's lines, as all these releases have them."""

    @property
    def share(self) -> float:
        """Share of the masked words that all releases together show."""
        return self.shown / self.masked if self.masked else 0.0

    def clear_share(self, raw: Path, private: Iterable[Iterable[Words]]) -> Figure:
        """Of the words of the text that anybody calls private or any of the releases masks, the share that stands in
        clear in the new one or in an earlier one.

        ``private``: line by line, for each technique and tagger. Releases that are ``unknown`` are left out.
        """

        def of_lines() -> Iterator[_Line]:
            return (self.by_digest[_digest(line)] for line in read_lines(raw))

        masked = (frozenset(line.masked) for line in of_lines())
        hidden = (frozenset(line.hidden or ()) for line in of_lines())
        beside = "".join(f", and {name!r}" for name in self.lines) + "".join(
            f" (what {name!r} shows is not known)" for name in self.unknown
        )
        said = f"whoever reads this text{beside}; private is what any technique, tagger or release of it calls so"
        return replace(clear_share([*private, masked], hidden), attacker=said)


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
    return SharedLines(shared, shown, masked, unknown, ours)


def _lines(raw: Path, sidecar: Path) -> Iterator[tuple[bytes, list[MaskedSpan]]]:
    """Each line's digest, which stands for it in memory, with what was masked in it."""
    for line, spans in zip(read_lines(raw), read_sidecar(sidecar), strict=True):
        yield _digest(line), spans


def _digest(line: str) -> bytes:
    return blake2b(line.encode(), digest_size=16).digest()
