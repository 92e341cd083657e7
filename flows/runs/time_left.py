"""How long a run will still take, from how long its stages took the last time and in this run so far."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.graph import Graph
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
