"""What a run shows while it works: one bar on a terminal, one short line per ended stage elsewhere."""

import sys
import threading
import time
from types import TracebackType

from flows.graph.plan import enumeration
from flows.runs.time_left import TimeLeft
from flows.stages.executor import Outcome, State


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
