"""What a masked LM sees of a sentence, and which sentences it sees at once.

A sentence that fits into the model's positions is seen whole. Of a longer one the model sees a window round the markers
that are scored: every marker has at least an eighth of the window on either side of it, where the sentence has so much.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

_SHARED = 0.75
"""Markers of a long sentence share a window where they stand within this share of it."""
_MOST_PIECES = 8192
"""At most so many pieces per forward pass, padding included: long sentences go in smaller batches."""
_MOST_SCORES = 1 << 24
"""At most so many vocabulary scores per forward pass (64 MiB), but for a single window with more markers."""
_GPU_FACTOR = 8
"""On a GPU both are so many times as much."""
_ENOUGH_PIECES = 384
"""A batch of so many pieces keeps a processor busy, so it ends rather than pad its shortest sentence by more than"""
_MOST_PADDING = 1.08
"""this factor. A GPU is busy with whole batches only."""


@dataclass(frozen=True, slots=True)
class Window:
    """The pieces that the model sees, special ones included, and the positions of the markers that are scored."""

    pieces: list[int]
    positions: list[int]


@dataclass(frozen=True)
class Frame:
    """What the model puts round a text, and how much text has room between."""

    prefix: list[int]
    suffix: list[int]
    room: int
    """Pieces, special ones not counted."""

    @property
    def longest(self) -> int:
        """Pieces of the longest sentence that is seen whole, special ones counted."""
        return len(self.prefix) + self.room + len(self.suffix)

    def fits(self, pieces: Sequence[int]) -> bool:
        """Whether a sentence is seen whole."""
        return len(pieces) <= self.room

    def windows(self, pieces: Sequence[int], positions: Sequence[int]) -> list[Window]:
        """Windows that show every marker of ``positions`` (ascending) once, in order; one where the sentence fits."""
        if self.fits(pieces):
            return [self._window(pieces, positions, 0)]
        windows = []
        first = 0
        for index in range(1, len(positions) + 1):
            if index == len(positions) or positions[index] - positions[first] > self.room * _SHARED:
                amid = (positions[first] + positions[index - 1] + 1) // 2
                start = min(max(0, amid - self.room // 2), len(pieces) - self.room)
                windows.append(self._window(pieces, positions[first:index], start))
                first = index
        return windows

    def _window(self, pieces: Sequence[int], positions: Sequence[int], start: int) -> Window:
        inside = pieces[start : start + self.room]
        shift = len(self.prefix) - start
        return Window([*self.prefix, *inside, *self.suffix], [position + shift for position in positions])


Owner = TypeVar("Owner")


def padded_pieces(batch: Sequence[tuple[Owner, Window]]) -> int:
    """Pieces of a batch, padding included."""
    return len(batch) * max(len(window.pieces) for _, window in batch)


def window_batches(
    items: Sequence[tuple[Owner, Window]],
    *,
    most_windows: int,
    vocabulary_size: int,
    on_gpu: bool = False,
    equal_lengths: bool = False,
) -> Iterator[list[tuple[Owner, Window]]]:
    """The windows, each with whatever it belongs to, in batches of about equal length, short ones first; with
    ``equal_lengths`` no batch has any padding."""
    factor = _GPU_FACTOR if on_gpu else 1
    batch: list[tuple[Owner, Window]] = []
    places = 0
    for item in sorted(items, key=lambda item: len(item[1].pieces)):
        length = len(item[1].pieces)  # the newest is the longest, so the batch is padded to its length
        full = (
            len(batch) == most_windows
            or (len(batch) + 1) * length > _MOST_PIECES * factor
            or (places + len(item[1].positions)) * vocabulary_size > _MOST_SCORES * factor
        )
        wasteful = len(batch) * length >= _ENOUGH_PIECES and length > _MOST_PADDING * len(batch[0][1].pieces)
        unequal = equal_lengths and len(batch) > 0 and length > len(batch[0][1].pieces)
        if batch and (full or unequal or (wasteful and not on_gpu)):
            yield batch
            batch, places = [], 0
        batch.append(item)
        places += len(item[1].positions)
    if batch:
        yield batch
