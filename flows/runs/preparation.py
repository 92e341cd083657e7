"""Preparation of a run, with any scheduler: lock, overrides, plan and limits of steps."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from flows.checkout.overrides import checked_resources, overridden
from flows.checkout.run_lock import is_alive, run_lock
from flows.graph.graph import Graph, open_repository, project_folder, read_graph
from flows.graph.plan import planned
from flows.graph.private_sources import refuse_pushed_sources
from flows.graph.selection import select
from flows.runs.recorded_experiment import check_recordable, record_experiment
from flows.stages.executor import Outcome
from tasks.errors import ParameterError
from tasks.files.private_folders import close_private_folders
from tasks.settings.overrides import parse_overrides
from tasks.settings.resources import ResourceSettings
from tasks.spelling import nearest

Entry = TypeVar("Entry")


@dataclass
class Run:
    """One run in a checkout: its plan and limits, and the outcomes so far."""

    root: Path
    plan: Graph
    resources: ResourceSettings
    parallel_stages: int
    lock: int
    """File handle of the lock of runs, for the processes of the run."""
    observer: Callable[[str, Outcome | None], object] = lambda _name, _outcome: None
    """Called when a stage starts (with ``None``) and when it has ended (with its outcome)."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """Outcomes by stage; complete when the flow run has ended."""
    stopped: tuple[str, int] | None = None
    """How it was stopped, in words, and the signal's number; it starts no further stage."""


@contextmanager
def prepared_run(
    stages: Sequence[str],
    only: Sequence[str],
    overrides: Sequence[str],
    jobs: int | None,
    say: Callable[[str], object],
    folder: str | Path = ".",
    wait: Callable[[str], object] | None = None,
) -> Iterator[Run]:
    """Hold the lock of runs and apply the overrides inside the block; gives the run with its plan.

    ``say`` gets a sentence for the user. With ``wait``, a run waits for another one instead of an error. After a run
    with overrides, its finished stages are recorded as a DVC experiment.
    """
    values = parse_overrides(overrides)
    root = project_folder(folder)
    if values:
        check_recordable(root)
    with chdir(root), run_lock(root, wait) as lock, overridden(root, values):
        close_private_folders(root)
        drop_dead_locks(root)
        drop_torn_entries(root)
        plan, resources = checked_plan(root, stages, only)
        run = Run(root, plan, resources, jobs or resources.stages_at_once, lock)
        try:
            yield run
        finally:
            if values and (name := record_experiment(root, values, run.outcomes, plan)):
                say(
                    f"recorded as the DVC experiment {name!r}; params.yaml is as before. 'dvc exp apply {name}' "
                    "restores it, 'dvc exp show' compares"
                )


def checked_plan(root: Path, stages: Sequence[str], only: Sequence[str]) -> tuple[Graph, ResourceSettings]:
    """The plan of the selected stages, and the section ``resources``.

    ``cells.yaml`` is updated first. ``ParameterError`` if ``params.yaml`` has any mistake, or DVC would push a private
    source.
    """
    resources = checked_resources(root)
    refuse_pushed_sources(root)
    with open_repository(root) as repository:
        graph = read_graph(repository)
        plan = planned(select(graph, stages, only))
    check_step_names(resources, (node.step for node in graph.values()))
    return plan, resources


def drop_dead_locks(root: Path) -> None:
    """Remove DVC's list of files in use if none of the processes in it lives; DVC takes a zombie for a living one."""
    path = root / ".dvc" / "tmp" / "rwlock"
    if path.exists() and not any(is_alive(int(pid)) for pid in re.findall(r'"pid": (\d+)', path.read_text("utf-8"))):
        path.unlink(missing_ok=True)


def drop_torn_entries(root: Path) -> None:
    """Remove what a full disk leaves of an entry of DVC's run cache: its temporary file and its empty folder.

    DVC 3.67 takes the newest file of such a folder and fails if there is none ("join() argument must be str").
    """
    for folder in (root / ".dvc" / "cache" / "runs").glob("*/*"):
        for torn in folder.glob("*.tmp"):
            torn.unlink(missing_ok=True)
        with suppress(OSError):  # not empty
            folder.rmdir()


def check_step_names(resources: ResourceSettings, steps: Iterable[str]) -> None:
    """Raise ``ParameterError`` if a name or pattern fits no step of the graph: a limit must not be ignored."""
    needs = resources.cluster.needs if resources.cluster else {}
    named: dict[str, Iterable[str]] = {"time_limits": resources.time_limits, "cluster.needs": needs}
    named |= {f"concurrency.{tag}.steps": shared.steps for tag, shared in resources.concurrency.items()}
    steps = sorted(set(steps))
    for where, name in ((where, name) for where, names in named.items() for name in names):
        if not any(fnmatchcase(step, name) for step in steps):
            known = f"{nearest(name, steps)}; there are: {', '.join(steps)}"
            raise ParameterError(f"resources.{where}: {name!r} fits no step of dvc.yaml{known}")


def first_that_fits(entries: Mapping[str, Entry], step: str) -> Entry | None:
    """The first entry whose name, with ``*`` and ``?``, fits the step; ``None`` if none does."""
    return next((entry for name, entry in entries.items() if fnmatchcase(step, name)), None)


def tags(resources: ResourceSettings, step: str) -> list[str]:
    """The Prefect tags of the step, in the order of the settings."""
    return [
        tag for tag, shared in resources.concurrency.items() if any(fnmatchcase(step, name) for name in shared.steps)
    ]


def retry_delays(resources: ResourceSettings) -> list[float]:
    """Seconds before each further try, each twice the one before."""
    return [resources.retry_seconds * 2**number for number in range(resources.retries)]
