"""Batches of bounded size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def batches_that_fit(items: Iterable[Item], fits: Callable[[list[Item], Item], bool]) -> Iterator[list[Item]]:
    """All items in order; ``fits``: whether a batch, which is not empty, may also take the next item."""
    batch: list[Item] = []
    for item in items:
        if batch and not fits(batch, item):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def padded_batches(items: Iterable[Item], length: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Items by length, short ones first, in batches of padded length at most ``most``, or of one item."""
    return batches_that_fit(sorted(items, key=length), lambda batch, last: (len(batch) + 1) * length(last) <= most)
