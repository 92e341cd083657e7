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


class TimeLeft:
    """An estimate that improves with every finished stage."""

    def __init__(self, graph: Graph, parallel_stages: int, known: Mapping[str, float]) -> None:
        """``known`` has the seconds of stages in earlier runs, by name."""
        self._graph = graph
        self._parallel_stages = parallel_stages
        self._seconds = {name: seconds for name, seconds in known.items() if name in graph.nodes}
        self._waiting = set(graph.nodes)
        self._started: dict[str, float] = {}

    def start(self, name: str, now: float) -> None:
        """A stage starts; ``now`` in seconds of any one clock."""
        self._started[name] = now

    def end(self, outcome: Outcome) -> None:
        """Record the end of a stage. Only a command that ran gives a duration."""
        self._waiting.discard(outcome.name)
        self._started.pop(outcome.name, None)
        if outcome.state is State.RAN:
            self._seconds[outcome.name] = outcome.seconds

    def seconds(self, now: float) -> float | None:
        """Estimated seconds until all stages have ended, or ``None`` without any duration.

        At least the longest chain of stages, and at least the work divided by the parallel stages. A stage without a
        time of its own counts as the mean of its step, or else of all.
        """
        if not self._seconds:
            return None
        steps: dict[str, list[float]] = {}
        for name, seconds in self._seconds.items():
            steps.setdefault(self._graph.nodes[name].step, []).append(seconds)
        overall = fmean(self._seconds.values())
        work = 0.0
        chain: dict[str, float] = {}
        for name, node in self._graph.nodes.items():
            left = 0.0
            if name in self._waiting:
                left = self._seconds.get(name) or fmean(steps.get(node.step) or [overall])
                if name in self._started:
                    left = max(0.0, left - (now - self._started[name]))
            work += left
            chain[name] = left + max((chain[above] for above in node.upstream), default=0.0)
        return max(work / self._parallel_stages, max(chain.values(), default=0.0))

    def save(self, folder: Path) -> None:
        """Save the seconds for the next run."""
        present = load_durations(folder)
        with atomic_writer(folder / FILE) as stream:
            rounded = {name: round(seconds, 3) for name, seconds in {**present, **self._seconds}.items()}
            json.dump(rounded, stream, indent=1, sort_keys=True)


def load_durations(folder: Path) -> dict[str, float]:
    """Seconds of stages in earlier runs of this checkout, by name; empty without a record."""
    path = folder / FILE
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


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

    def __init__(self, total: int, time_left: TimeLeft) -> None:
        self._total, self._ended = total, 0
        self._time_left = time_left

    def __call__(self, name: str, outcome: Outcome | None) -> None:
        """Note the start of a stage, or print a line at its end; the flow calls it from one thread."""
        now = time.monotonic()
        if outcome is None:
            self._time_left.start(name, now)
            return
        self._time_left.end(outcome)
        self._ended += 1
        if outcome.log is not None or outcome.state is State.FAILED:
            left = self._time_left.seconds(now)
            rest = f"about {clock(left)} left" if left else ""
            rest = str(outcome.error) if outcome.state is State.FAILED else rest
            line = f"[{self._ended}/{self._total}] {outcome.state:<9}  {name}  {clock(outcome.seconds)}  {rest}"
            print(line.rstrip(), file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """``0:07``, ``12:34``, ``1:02:03``."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
