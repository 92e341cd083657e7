"""Progress of a run: one bar on a terminal, elsewhere one short line for each stage that has ended.

The time left is estimated from the times of the stages in earlier runs and in this run.
"""

import json
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from types import TracebackType

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.graph import Graph
from flows.graph.plan import Plan, enumeration
from flows.stages.executor import Outcome, State
from tasks.files.atomic_file import atomic_writer

FILE = Path(STATE_FOLDER) / "durations.json"


class TimeLeft:
    """An estimate that gets better with every stage that ends."""

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
        """A stage has ended. Only a command that ran says how long it takes."""
        self._waiting.discard(outcome.name)
        self._started.pop(outcome.name, None)
        if outcome.state is State.RAN:
            self._seconds[outcome.name] = outcome.seconds

    def seconds(self, now: float) -> float | None:
        """Estimated seconds until all stages have ended, or ``None`` while nothing is known.

        At least the longest chain of stages, and at least the work shared out over the parallel stages. A stage without
        a time of its own counts as the mean of its step, or else of all.
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
        """Keep the seconds for the next run."""
        present = load_durations(folder)
        with atomic_writer(folder / FILE) as stream:
            rounded = {name: round(seconds, 3) for name, seconds in {**present, **self._seconds}.items()}
            json.dump(rounded, stream, indent=1, sort_keys=True)


def load_durations(folder: Path) -> dict[str, float]:
    """Seconds of stages in earlier runs of this checkout, by name; empty where none are kept."""
    path = folder / FILE
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


SUMMARY_TABLE = Path("results/summary.md")
REPORT_PAGE = Path("results/report.html")
VERDICT = Path("results/verdict.txt")


def makers_of(path: Path, plan: Plan) -> list[str]:
    """Stages of the plan that make the file."""
    return [node.name for node in plan.graph.nodes.values() if str(path) in node.outputs]


def is_of_this_run(path: Path, plan: Plan, outcomes: Mapping[str, Outcome]) -> bool:
    """Whether the file is there and up to date: the stages that make it belong to the run and are done."""
    makers = makers_of(path, plan)
    lost = (State.FAILED, State.SKIPPED)
    return bool(makers) and path.exists() and not any(outcomes[name].state in lost for name in makers)


class Lines:
    """One line on standard error per stage that DVC was asked about, with the reason where it failed."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0

    def __call__(self, name: str, outcome: Outcome | None) -> None:
        """Print a line where a stage has ended."""
        if outcome is None:
            return
        self._ended += 1
        if outcome.log is not None or outcome.state is State.FAILED:
            line = f"[{self._ended}/{self._total}] {outcome.state:<9}  {name}  {clock(outcome.seconds)}"
            reason = f"  {outcome.error}" if outcome.state is State.FAILED else ""
            print(line + reason, file=sys.stderr, flush=True)

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        return


class Bar:
    """One bar: stages done of all, the names of those that run, time so far and time left.

    A stage that failed is a line above it, with the reason.
    """

    def __init__(self, total: int, time_left: TimeLeft) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._time_left = time_left
        self._lock = threading.Lock()
        self._running: list[str] = []
        self._failed = 0
        self._ended_stages = 0
        self._started = time.monotonic()
        self._progress = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[clocks]}"),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar = self._progress.add_task("", total=total, clocks="")
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __call__(self, name: str, outcome: Outcome | None) -> None:
        """Move on where a stage has ended."""
        with self._lock:
            if outcome is None:
                self._running.append(name)
                self._time_left.start(name, time.monotonic())
            else:
                if name in self._running:
                    self._running.remove(name)
                self._ended_stages += 1
                self._failed += outcome.state is State.FAILED
                self._time_left.end(outcome)
                self._progress.advance(self._bar)
        if outcome is not None and outcome.state is State.FAILED:
            self._progress.console.print(f"failed  {name}  {outcome.error}", markup=False, highlight=False)
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        with self._lock:
            left = self._time_left.seconds(now)
            failed = f"{self._failed} failed; " if self._failed else ""
            names = enumeration(self._running, shown=2) or ("finishing" if self._ended_stages else "starting")
        clocks = clock(now - self._started) + (f", about {clock(left)} left" if left is not None else "")
        self._progress.update(self._bar, description=f"{failed}{names}", clocks=clocks)

    def _tick(self) -> None:
        while not self._ended.wait(1.0):
            self._show()

    def __enter__(self) -> "Bar":
        self._progress.start()
        self._ticker.start()
        self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._progress.stop()


def clock(seconds: float) -> str:
    """``0:07``, ``12:34``, ``1:02:03``."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
