"""The frame of the benchmarks: a timer by turns, rows, and functions in a process of their own.

A row has ``name``, ``ours``, ``peer``, ``unit``, ``ratio``, ``target`` and ``holds``. The ratio of two speeds is ours
by the peer's, of two times the peer's by ours: above 1, palimpsest is faster. All other ratios are ours by the peer's.
Outputs of both sides are compared before they are timed.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
Action = Callable[[], object]


def processor(action: Action, now: Callable[[], float] = time.process_time) -> float:
    """Processor seconds of an action: a busy machine changes them little."""
    started = now()
    action()
    return now() - started


wall = partial(processor, now=time.perf_counter)
"""Seconds of an action on the clock."""


def take_turns(rounds: int, *actions: Any, clock: Callable[[Any], float] = processor) -> list[list[float]]:
    """Seconds of each action in every round; the first action of a round is another one each time."""
    seconds: list[list[float]] = [[] for _ in actions]
    for number in range(rounds):
        for position in range(len(actions)):
            index = (number + position) % len(actions)
            seconds[index].append(clock(actions[index]))
    return seconds


def row(name: str, ours: float, peer: float, unit: str, target: str, ratio: float | None = None) -> dict[str, Any]:
    """A row; ``target`` is of the ratio, such as ``>= 1.5``."""
    if ratio is None:
        ratio = peer / ours if unit == "s" else ours / peer
    sign, limit = target.split()
    holds = ratio >= float(limit) if sign == ">=" else ratio <= float(limit)
    numbers = {"ours": float(f"{ours:.5g}"), "peer": float(f"{peer:.5g}"), "ratio": float(f"{ratio:.4g}")}
    return {"name": name, "unit": unit, "target": target, "holds": holds, **numbers}


def speed(
    name: str, work: float, unit: str, ours: Any, peer: Any, *, rounds: int = 3, clock: Any = processor
) -> dict[str, Any]:
    """A row of two speeds, ``work`` units in the median of the rounds. The ratio is the median of the rounds' ratios.

    So a moment in which the machine is slow counts for both sides or not at all.
    """
    our_seconds, peer_seconds = take_turns(rounds, ours, peer, clock=clock)
    ratio = median(theirs / own for own, theirs in zip(our_seconds, peer_seconds, strict=True))
    return row(name, work / median(our_seconds), work / median(peer_seconds), unit, ">= 1.0", ratio)


def check_same(ours: Sequence[Any], peer: Sequence[Any], what: str, share: float = 1.0) -> None:
    """Raise ``AssertionError`` unless at least this share of the outputs is equal."""
    same = sum(own == theirs for own, theirs in zip(ours, peer, strict=True))
    if same < share * len(ours):
        raise AssertionError(f"{what}: {len(ours) - same} of {len(ours)} outputs differ between the sides")


def in_process(module: str, function: str, *arguments: object, timeout: float | None = None) -> Any:
    """The result of a benchmark's function in a process of its own; ``RuntimeError`` with its errors if it fails."""
    code = f"import json\nfrom benchmarks.{module} import {function}\nprint(json.dumps({function}(*{arguments!r})))"
    try:
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{module}.{function}{arguments}: not done after {timeout} s") from None
    if done.returncode:
        raise RuntimeError(f"{module}.{function}{arguments} failed:\n{done.stderr[-2000:].strip()}")
    return json.loads(done.stdout.splitlines()[-1])
