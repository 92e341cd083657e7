"""Progress of a run: one short line for each finished stage.

The remaining time is estimated from the times of the stages in earlier runs and in this run.
"""

import json
import sys
import time
from pathlib import Path
from statistics import fmean

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.graph import Graph
from flows.stages.executor import Outcome, State
from tasks.records.stage_report import write_json

FILE = Path(STATE_FOLDER) / "durations.json"
"""Seconds of stages in earlier runs of a checkout, by name."""


class Progress:
    """One line on standard error for each stage that DVC has checked, with the reason of a failure or the time left."""

    def __init__(self, graph: Graph, parallel_stages: int, folder: Path) -> None:
        """Read the times of earlier runs in a checkout."""
        self._graph, self._parallel_stages, self._file = graph, parallel_stages, folder / FILE
        self._seconds: dict[str, float] = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        self._waiting = set(graph)
        self._started: dict[str, float] = {}

    def __call__(self, name: str, outcome: Outcome | None) -> None:
        """Note the start of a stage, or print a line at its end; the flow calls it from one thread."""
        if outcome is None:
            self._started[name] = time.monotonic()
            return
        self._waiting.discard(name)
        if outcome.state is State.RAN:
            self._seconds[name] = round(outcome.seconds, 3)
        if outcome.log is not None or outcome.state is State.FAILED:
            left = self.seconds_left(time.monotonic())
            rest = f"about {clock(left)} left" if left else ""
            rest = str(outcome.error) if outcome.state is State.FAILED else rest
            done = f"[{len(self._graph) - len(self._waiting)}/{len(self._graph)}]"
            line = f"{done} {outcome.state:<9}  {name}  {clock(outcome.seconds)}  {rest}"
            print(line.rstrip(), file=sys.stderr, flush=True)

    def seconds_left(self, now: float) -> float | None:
        """Estimated seconds until all stages have ended, or ``None`` without any duration.

        At least the longest chain of stages, and at least the work divided by the parallel stages. A stage without a
        time of its own counts as the mean of its step, or else of all.
        """
        known = {name: seconds for name, seconds in self._seconds.items() if name in self._graph}
        if not known:
            return None
        steps: dict[str, list[float]] = {}
        for name, seconds in known.items():
            steps.setdefault(self._graph[name].step, []).append(seconds)
        left, chain = dict.fromkeys(self._graph, 0.0), dict[str, float]()
        for name, node in self._graph.items():
            if name in self._waiting:
                whole = known.get(name) or fmean(steps.get(node.step) or known.values())
                left[name] = max(0.0, whole - (now - self._started.get(name, now)))
            chain[name] = left[name] + max((chain[above] for above in node.upstream), default=0.0)
        return max(sum(left.values()) / self._parallel_stages, *chain.values())

    def save(self) -> None:
        """Save the seconds for the next run."""
        write_json(self._file, dict(sorted(self._seconds.items())))


def clock(seconds: float) -> str:
    """``0:07``, ``12:34``, ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
