"""Leakage of a release together with earlier releases of the same lines, under any names of their corpora.

A word that one technique masks may be unmasked by another, so two releases of one text together show more than each
alone. Lines are equal under any spaces, case and punctuation, and may be edited ones (``edited_lines``). A line that
equals one of an earlier release is no edited form of a third one.

Epsilon adds up over these lines, too: each set of counts costs once for each form of a line (``SharedLines.spent``).
A text to which a cell was applied costs the lines that were counted, and those are the run's, released or not.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.corpora.edited_lines import LineLetters, edited_lines
from tasks.corpora.sidecar import MaskedSpan, read_sidecar, write_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.files.clone_key import private_home
from tasks.privacy.ledger import Release

RAW, SIDECAR, COUNTED = "raw.txt", "sidecar.jsonl", "counted"
"""Files of a private copy. It has the text itself, since masked text and sidecar restore it anyway, except for the
white space between merged markers. ``COUNTED``: folder with those two of the counted lines, if they are others."""
_Key = tuple[str | None, bytes]
"""A set of counts, and the form of the line in it."""


@dataclass(slots=True)
class _Line:
    """All lines with the same letters."""

    runs: np.ndarray
    """Hashes of its runs: (R,) int64."""
    count: int = 0
    masked: set[tuple[int, int]] = field(default_factory=set)
    """Words that any release masks, by their first letter of the line and the one past their last."""
    hidden: set[tuple[int, int]] | None = None
    """Words that every release masks."""
    forms: dict[bytes, dict[_Key, float]] = field(default_factory=dict)
    """Its texts, each with the masked places, and the epsilons that were spent on it."""

    def add(self, places: set[tuple[int, int]]) -> None:
        self.masked |= places
        self.hidden = places if self.hidden is None else self.hidden & places


@dataclass(frozen=True, slots=True)
class SharedLines:
    """Earlier releases that share lines with the new one."""

    lines: dict[str, int]
    """Number of shared lines with a masked word, edited ones included, by name of the release."""
    shown: int
    """Words that one of these releases, the new one included, masks and another shows, in lines of equal letters."""
    masked: int
    """Words that any of them masks, in these lines."""
    unknown: Sequence[str] = ()
    """Releases whose private copy is missing, so that their shared lines are unknown."""
    edited: Mapping[str, int] = field(default_factory=dict)
    """Number of shared lines that are edited, by name of the release."""
    by_letters: Mapping[bytes, _Line] = field(default_factory=dict)
    """Lines of the new release, in the forms of all these releases."""
    counted: Collection[str] = ()
    """Names of releases whose counts read lines of the new one, released there or not."""

    @property
    def share(self) -> float:
        """The share of the masked words that all releases together show."""
        return self.shown / self.masked if self.masked else 0.0

    def among(self, releases: Iterable[Release], dataset: str | None) -> list[Release]:
        """The releases that share lines with the new one; unknown lines of the same corpus count as shared."""
        shared = {*self.lines, *self.counted}
        return [one for one in releases if one.name in shared or (one.name in self.unknown and one.dataset == dataset)]

    def spent(self, holders: Iterable[Release], counts: str | None, epsilon: float, unit: str | None) -> float:
        """The largest sum of epsilons for a unit: those of the ``holders`` (``among``) and that of the new
        counts."""
        added = {release.counts: release.epsilon or 0.0 for release in holders if release.name in self.unknown}
        added[counts] = epsilon
        spent = [(form, of_it) for line in self.by_letters.values() for form, of_it in line.forms.items()]
        if unit == "document":
            # Its lines may be in different releases.
            return sum(({one: cost for _, of_it in spent for (one, _), cost in of_it.items()} | added).values())
        return max(
            (sum((of_it | {(one, form): cost for one, cost in added.items()}).values()) for form, of_it in spent),
            default=sum(added.values()),
        )

    def write_hidden(self, raw: Path, sidecar: Path, to: Path) -> Path:
        """Write the sidecar of the words that all these releases together mask: the new one's spans that no earlier
        release shows. Releases that are ``unknown`` are left out."""
        hidden_spans = []
        for line, spans in zip(read_lines(raw), read_sidecar(sidecar), strict=True):
            found = LineLetters(line, spans)
            hidden = self.by_letters[found.digest].hidden or ()
            hidden_spans.append([span for span, place in zip(spans, found.places, strict=True) if place in hidden])
        write_sidecar(to, hidden_spans)
        return to


def shared_lines(raw: Path, sidecar: Path, earlier: Sequence[Release], copies: Path | None = None) -> SharedLines:
    """``shared_with`` of a text and its sidecar. Without an earlier release the text is not read."""
    return shared_with(zip(read_lines(raw), read_sidecar(sidecar), strict=True) if earlier else (), earlier, copies)


def shared_with(
    lines: Iterable[tuple[str, Sequence[MaskedSpan]]], earlier: Iterable[Release], copies: Path | None = None
) -> SharedLines:
    """The lines of a text that are also in earlier releases, by their private copies ``copies/NAME``, or this clone's.

    Words are counted at every line of the new text. A line without a masked word in any release shows nothing new and
    does not count as shared.
    """
    ours: dict[bytes, _Line] = {}
    for text, spans in lines:
        found = LineLetters(text, spans)
        line = ours.get(found.digest) or ours.setdefault(found.digest, _Line(found.runs()))
        line.count += 1
        line.add(set(found.places))
        line.forms.setdefault(found.form, {})
    shared, edited = dict[str, int](), dict[str, int]()
    unknown: list[str] = []
    counted: set[str] = set()
    together: set[bytes] = set()
    for release in earlier:
        folder = (copies or private_home() / "releases") / release.name
        if not folder.exists():
            unknown.append(release.name)
            continue
        forms, near = _matched(folder, ours, shows=True)
        separate = folder / COUNTED
        own, edited_ones = _matched(separate, ours, shows=False) if separate.exists() else (forms, near)
        for digest, found_forms in [*own.items(), *((digest, [form]) for digest, form in edited_ones.items())]:
            if ours[digest].masked or digest in edited_ones:
                _spend(ours[digest], found_forms, release)
                counted.add(release.name)
        equal = sum(ours[digest].count for digest in forms if ours[digest].masked)
        changed = sum(ours[digest].count for digest in near)
        if changed:
            edited[release.name] = changed
        if equal + changed:
            shared[release.name] = equal + changed
            together |= forms.keys()
    found_lines = [ours[digest] for digest in together]
    masked = sum(line.count * len(line.masked) for line in found_lines)
    shown = sum(line.count * len(line.masked - (line.hidden or set())) for line in found_lines)
    return SharedLines(shared, shown, masked, unknown, edited, ours, counted)


def _matched(
    folder: Path, ours: Mapping[bytes, _Line], *, shows: bool
) -> tuple[dict[bytes, list[bytes]], dict[bytes, bytes]]:
    """The forms of our lines in a private copy by digest, and the form of its most similar line for an edited one.

    ``shows``: the copy's lines were released, so their masked words are added to ours.
    """
    forms: dict[bytes, list[bytes]] = {}
    others: dict[bytes, tuple[LineLetters, bool]] = {}
    for text, spans in zip(read_lines(folder / RAW), read_sidecar(folder / SIDECAR), strict=True):
        found = LineLetters(text, spans)
        if found.digest in ours:
            if shows:
                ours[found.digest].add(set(found.places))
            forms.setdefault(found.digest, []).append(found.form)
        else:
            others.setdefault(found.digest, (found, bool(spans)))
    rest, gone = [digest for digest in ours if digest not in forms], list(others.values())
    likest = edited_lines((ours[digest].runs for digest in rest), (line.runs() for line, _ in gone))
    near = {rest[index]: gone[of][0].form for index, of in likest.items() if gone[of][1] or ours[rest[index]].masked}
    return forms, near


def _spend(line: _Line, forms: Sequence[bytes], release: Release) -> None:
    """Add a release's epsilon to each form of a line: the release's own form, else the form that was used since."""
    gone = [form for form in forms if form not in line.forms]
    for form, spent in line.forms.items():
        if form in forms or gone:
            spent[release.counts, form if form in forms else gone[0]] = release.epsilon or 0.0
