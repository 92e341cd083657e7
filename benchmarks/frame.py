"""The frame of the benchmarks of speed: a timer by turns, and rows.

A row has ``name``, ``ours``, ``peer``, ``unit``, ``ratio``, ``target`` and ``holds``. The ratio is our speed by the
peer's: above 1, palimpsest is faster. Outputs of both sides are compared before they are timed.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

Action = Callable[[], object]


def processor(action: Action, now: Callable[[], float] = time.process_time) -> float:
    """Processor seconds of an action: a busy machine changes them little."""
    started = now()
    action()
    return now() - started


wall = partial(processor, now=time.perf_counter)
"""Seconds of an action on the clock."""


def speed(
    name: str, work: float, unit: str, ours: Any, peer: Any, *, rounds: int = 3, clock: Any = processor
) -> dict[str, Any]:
    """A row of two speeds, ``work`` units in the median of the rounds. The ratio is the median of the rounds' ratios.

    So a moment in which the machine is slow counts for both sides or not at all. Each side begins a round in turn.
    """
    sides, seconds = (ours, peer), list[list[float]]([[], []])
    for number in range(rounds):
        for side in (number % 2, 1 - number % 2):
            seconds[side].append(clock(sides[side]))
    ratio = median(theirs / own for own, theirs in zip(*seconds, strict=True))
    own, theirs = (float(f"{work / median(each):.5g}") for each in seconds)
    numbers = {"ours": own, "peer": theirs, "ratio": float(f"{ratio:.4g}")}
    return {"name": name, "unit": unit, "target": ">= 1.0", "holds": ratio >= 1, **numbers}


def check_same(ours: Sequence[Any], peer: Sequence[Any], what: str, share: float = 1.0) -> None:
    """Raise ``AssertionError`` unless at least this share of the outputs is equal."""
    same = sum(own == theirs for own, theirs in zip(ours, peer, strict=True))
    if same < share * len(ours):
        raise AssertionError(f"{what}: {len(ours) - same} of {len(ours)} outputs differ between the sides")
