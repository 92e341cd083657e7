"""A text in parts, counted from its first line: computed one after the other, or on the machines of a cluster.

The content of a part, and so of a batch, does not depend on the division of work. A result that depends on more than
its part must not be split.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tasks.settings.resources import ResourceSettings

PART_LINES = 4096
Item = TypeVar("Item")
Advance = Callable[[int], object]
Work = Callable[[Any, Advance], Any]
"""Computes a part; calls the second argument with the number of steps just done."""
Make = Callable[[], Work]


def blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Consecutive lists of ``size`` items, the last one shorter."""
    iterator = iter(items)
    while block := list(itertools.islice(iterator, size)):
        yield block


def nothing(steps: int) -> None:
    """Shows no progress."""


def computed(
    parts: Iterable[object],
    make: Make,
    resources: ResourceSettings,
    *,
    uses_model: bool,
    advance: Advance = nothing,
) -> Iterator[Any]:
    """The results of all parts, in order: computed here, or on the cluster in ``resources``.

    ``make`` is called once, or once in each worker that gets a part: it must be picklable.
    """
    if resources.cluster:
        from tasks.ray_cluster import computed_on_cluster

        yield from computed_on_cluster(parts, make, resources, uses_model=uses_model, advance=advance)
        return
    work: Work | None = None
    for part in parts:
        work = work or make()
        yield work(part, advance)
