"""Progress of a run: one short line for each finished stage.

The remaining time is estimated from the times of the stages in earlier runs and in this run.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.graph import Graph
from flows.graph.plan import Plan
from flows.stages.executor import Outcome, State
from tasks.files.atomic_file import atomic_writer

FILE = Path(STATE_FOLDER) / "durations.json"
"""Seconds of stages in earlier runs of a checkout, by name."""
SUMMARY_TABLE = Path("results/summary.md")
REPORT_PAGE = Path("results/report.html")
VERDICT = Path("results/verdict.txt")


def makers_of(path: Path, plan: Plan) -> list[str]:
    """Stages of the plan that make the file."""
    return [node.name for node in plan.graph.nodes.values() if str(path) in node.outputs]


def is_of_this_run(path: Path, plan: Plan, outcomes: Mapping[str, Outcome]) -> bool:
    """Whether the file exists and is up to date: its stages belong to the run and are done."""
    makers = makers_of(path, plan)
    lost = (State.FAILED, State.SKIPPED)
    return bool(makers) and path.exists() and not any(outcomes[name].state in lost for name in makers)


class Progress:
    """One line on standard error for each stage that DVC has checked, with the reason of a failure or the time left."""

    def __init__(self, graph: Graph, parallel_stages: int, folder: Path) -> None:
        """Read the times of earlier runs in a checkout."""
        self._graph, self._parallel_stages, self._file = graph, parallel_stages, folder / FILE
        self._seconds: dict[str, float] = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        self._waiting = set(graph.nodes)
        self._started: dict[str, float] = {}

    def __call__(self, name: str, outcome: Outcome | None) -> None:
        """Note the start of a stage, or print a line at its end; the flow calls it from one thread."""
        if outcome is None:
            self._started[name] = time.monotonic()
            return
        self._waiting.discard(name)
        if outcome.state is State.RAN:
            self._seconds[name] = outcome.seconds
        if outcome.log is not None or outcome.state is State.FAILED:
            left = self.seconds_left(time.monotonic())
            rest = f"about {clock(left)} left" if left else ""
            rest = str(outcome.error) if outcome.state is State.FAILED else rest
            total = len(self._graph.nodes)
            done = f"[{total - len(self._waiting)}/{total}]"
            line = f"{done} {outcome.state:<9}  {name}  {clock(outcome.seconds)}  {rest}"
            print(line.rstrip(), file=sys.stderr, flush=True)

    def seconds_left(self, now: float) -> float | None:
        """Estimated seconds until all stages have ended, or ``None`` without any duration.

        At least the longest chain of stages, and at least the work divided by the parallel stages. A stage without a
        time of its own counts as the mean of its step, or else of all.
        """
        known = {name: seconds for name, seconds in self._seconds.items() if name in self._graph.nodes}
        steps: dict[str, list[float]] = {}
        for name, seconds in known.items():
            steps.setdefault(self._graph.nodes[name].step, []).append(seconds)
        chain: dict[str, float] = {}
        work = 0.0
        for name, node in self._graph.nodes.items():
            left = 0.0
            if name in self._waiting and known:
                left = known.get(name) or fmean(steps.get(node.step) or known.values())
                left = max(0.0, left - (now - self._started.get(name, now)))
            work += left
            chain[name] = left + max((chain[above] for above in node.upstream), default=0.0)
        return max(work / self._parallel_stages, *chain.values()) if known else None

    def save(self) -> None:
        """Save the seconds for the next run."""
        with atomic_writer(self._file) as stream:
            rounded = {name: round(seconds, 3) for name, seconds in self._seconds.items()}
            json.dump(rounded, stream, indent=1, sort_keys=True)


def clock(seconds: float) -> str:
    """``0:07``, ``12:34``, ``1:02:03``."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
