"""How two sides are timed: they take turns on one core, in processor time, and medians count."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any


def take_turns(rounds: int, *actions: Callable[[], object]) -> list[list[float]]:
    """Processor seconds of each action in every round; the first action of a round is another one each time."""
    seconds: list[list[float]] = [[] for _ in actions]
    for number in range(rounds):
        for position in range(len(actions)):
            index = (number + position) % len(actions)
            started = time.process_time()
            actions[index]()
            seconds[index].append(time.process_time() - started)
    return seconds


def compared(rounds: int, ours: Callable[[], object], peer: Callable[[], object]) -> tuple[float, float, float]:
    """Median seconds of ours and of the peer, and how many times faster ours is: the median over the rounds, so that
    a moment in which the machine is slow counts for both sides or not at all."""
    our_seconds, peer_seconds = take_turns(rounds, ours, peer)
    ratios = [theirs / own for own, theirs in zip(our_seconds, peer_seconds, strict=True)]
    return median(our_seconds), median(peer_seconds), median(ratios)


def row(
    name: str, ours: float, peer: float | None, unit: str, ratio: float | None, target: str, holds: bool
) -> dict[str, Any]:
    """One result, as ``benchmarks.__main__`` describes it."""
    return {"name": name, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio, "target": target, "holds": holds}
