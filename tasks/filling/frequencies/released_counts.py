"""What was counted of a corpus that grows: what has left was counted once, and only new lines are counted anew.

Were all lines counted each night, each night's noise would be another, and the mean of a hundred tells a word surely.
So the noisy counts of a *batch* of lines are frozen when a fill made of them is released. Later counts of the same
*series* (corpus, technique, settings, counted words) take them as they are, and add those of the lines that are new. A
batch that nothing was released of is no part of any sum: an experiment costs nothing.

**Why epsilon holds for all releases of a series together.** A line is counted in one released batch at most, since the
lines of released batches are left out of all later ones, and everything else that leaves is made of what left before.
How many lines a batch has of each masked text follows from masked text alone (as many as there are more than were
counted before), so other words behind the markers of one line change the counts of its one batch, by 2 L in sum at the
most, and no other batch. That batch has noise of its own for 2 L: no outcome of all releases becomes more probable by
more than exp(epsilon).

**What is not so.** This is about lines that stay. A line whose words are changed is another line, with an epsilon of
its own; it is counted only where its masked text has become more frequent, and counts of lines that went stay in the
sum. A line that comes with the masked text and the words of one that went is taken for it. Of a line that stands there
several times each one is a unit: three of which two were counted leave one to count.

**Why no tree of partial sums** (Chan, Shi and Song 2011): its noise grows by the log of the number of nights instead of
their number, but each line is counted at every level, with an epsilon divided by the levels, and how many there are
must be known on the first night. Releases are rare; the variance of these sums grows by one batch for each.

For ``unit: document`` nothing is frozen: a document that grows would have to be counted again. There each changed
corpus is another set of counts, and the ledger adds its epsilon.
"""

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import ParameterError
from tasks.files.atomic_file import atomic_writer, make_folder
from tasks.files.clone_key import private_home

_RELEASED = ".released.npz"
_COUNTED = ".npz"


@dataclass(frozen=True)
class Batch:
    """Noisy counts of some lines."""

    name: str
    """Keyed id of all that was counted."""
    lines: np.ndarray
    """``(N, 2)`` uint64 fingerprints of the lines (``line_fingerprint``)."""
    counts: np.ndarray
    """``(C,)`` int64 with noise."""
    places: int
    """How many words were counted."""


class CountSeries:
    """The batches of one series: ``data/private/counts/SERIES``, mode 0700."""

    def __init__(self, name: str, home: Path | None = None) -> None:
        """``name``: its keyed id; ``home``: ``data/private`` of this clone if ``None``."""
        self.name = name
        self._folder = (home or private_home()) / "counts" / name

    def released(self) -> list[Batch]:
        """The batches that have left, in the order of their names."""
        return [_read(path) for path in sorted(self._folder.glob(f"*{_RELEASED}"))]

    def keep(self, batch: Batch) -> None:
        """Write a batch that may be released; mode 0600."""
        make_folder(self._folder, private=True)
        with self._lock():
            if not self._path(batch.name, _RELEASED).exists():
                with atomic_writer(self._path(batch.name, _COUNTED), private=True, binary=True) as stream:
                    np.savez_compressed(stream, lines=batch.lines, counts=batch.counts, places=np.array(batch.places))

    def release(self, batches: Sequence[str]) -> None:
        """Freeze these; ``ParameterError`` where another one left since they were counted, or where one is gone."""
        if not self._folder.exists():
            raise ParameterError(f"no counts of series {self.name!r} are in {str(self._folder.parent)!r}; fill again")
        with self._lock():
            before = {path.name.removesuffix(_RELEASED) for path in self._folder.glob(f"*{_RELEASED}")}
            fresh = [name for name in batches if name not in before]
            if fresh and not before <= set(batches):
                raise ParameterError(
                    f"counts {fresh[0]!r} were made before counts {min(before - set(batches))!r} of the same lines "
                    "left, so that words would leave twice; fill again (dvc repro --force): it counts new lines alone"
                )
            for name in fresh:
                if not self._path(name, _COUNTED).exists():
                    raise ParameterError(
                        f"counts {name!r} are not in {str(self._folder)!r}; fill again (dvc repro --force)"
                    )
            for name in fresh:
                self._path(name, _COUNTED).rename(self._path(name, _RELEASED))

    def _path(self, name: str, suffix: str) -> Path:
        return self._folder / f"{name}{suffix}"

    def _lock(self) -> FileLock:
        return FileLock(self._folder / ".lock")


def mark_released(measured: Mapping[str, Any], home: Path | None = None) -> None:
    """Freeze the counts that a fill was made of; to be called when it is released, before anything of it leaves.

    ``measured``: ``counted_frequencies`` of the fill's report. ``ParameterError`` where other counts of the same lines
    were released since the fill was made, or where the counts are gone: then nothing is changed, and nothing may leave.
    """
    if measured["unit"] == "line":
        CountSeries(measured["counts"], home).release(measured["batches"])


def refuse_lost(measured: Mapping[str, Any], left: Collection[str | None], home: Path | None = None) -> None:
    """``ParameterError`` where counts of the same series have left (``left``: ids of the ledger) and are not here."""
    if measured["unit"] == "line" and measured["counts"] in left:
        series = CountSeries(measured["counts"], home)
        if not series.released():
            raise ParameterError(
                f"counts {series.name!r} have left, as the ledger says, and are not in data/private/counts; bring back "
                "that folder: without it all lines would be counted a second time"
            )


def series_name(key: bytes, of: Sequence[str | None], *counted: object) -> str:
    """The id of a series by its corpus and technique (``of``), settings and counted words; keyed, since names of
    corpora are nobody's business."""
    return hmac.new(key, json.dumps(["series", of, *counted]).encode(), "sha256").hexdigest()[:16]


def line_fingerprint(key: bytes, line: str, spans: Sequence[MaskedSpan]) -> tuple[int, int]:
    """Two keyed numbers of 64 bits: of a masked line, and of it with the words behind its markers."""
    text = hashlib.blake2b(line.encode(), key=key, digest_size=8)
    words = hashlib.blake2b(
        json.dumps([line, [[span.marker, span.original] for span in spans]]).encode(), key=key, digest_size=8
    )
    return int.from_bytes(text.digest(), "little"), int.from_bytes(words.digest(), "little")


def new_lines(lines: np.ndarray, released: Sequence[Batch]) -> np.ndarray:
    """``(N,)`` booleans: which of the lines with ``(N, 2)`` fingerprints are to be counted.

    Of each masked text so many as there are more than in the batches, the first ones that are in none of them.
    """
    if not released:
        return np.ones(len(lines), dtype=bool)
    before = np.concatenate([batch.lines for batch in released])
    known = Counter(before[:, 1].tolist())
    texts = lines[:, 0].tolist()
    more = Counter(texts)
    more.subtract(before[:, 0].tolist())
    chosen = np.zeros(len(lines), dtype=bool)
    for index, (text, words) in enumerate(zip(texts, lines[:, 1].tolist(), strict=True)):
        if known[words] > 0:
            known[words] -= 1
        elif more[text] > 0:
            more[text] -= 1
            chosen[index] = True
    return chosen


def _read(path: Path) -> Batch:
    with np.load(path, allow_pickle=False) as held:
        return Batch(path.name.removesuffix(_RELEASED), held["lines"], held["counts"], int(held["places"]))
