"""Preparation of a run, with any scheduler: lock, overrides, plan, and the report of missing inputs.

Missing requirements of stages that will run are reported before any of them starts, by the checks of
``palimpsest doctor`` that concern inputs of such a stage. An input that no stage makes is always checked.
"""

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from flows.checkout.overrides import checked_resources, overridden
from flows.checkout.run_lock import is_alive, run_lock
from flows.graph.changes import NOT_IN_CACHE, Kind
from flows.graph.graph import Node, open_repository, project_folder
from flows.graph.plan import Action, Plan, make_plan
from flows.graph.selection import Selection, parse_only
from flows.runs.recorded_experiment import check_recordable, record_experiment
from flows.stages.executor import Outcome
from tasks.errors import ParameterError, StageError
from tasks.files.private_folders import close_private_folders
from tasks.parameters.cells_command import STAGE as CHECK_OF_PARAMETERS
from tasks.settings.overrides import parse_overrides
from tasks.settings.resources import ResourceSettings
from tasks.spelling import nearest

if TYPE_CHECKING:
    from tasks.doctor.finding import Check, Finding

Entry = TypeVar("Entry")
FOLDER_VARIABLE = "PALIMPSEST_FOLDER"
"""Environment variable of a worker, or of the container that it starts: the project's folder."""
Observer = Callable[[str, Outcome | None], object]
"""Called when a stage starts (with ``None``) and when it has ended (with its outcome)."""


@dataclass
class Run:
    """One run in a checkout: its plan and limits, and the outcomes so far."""

    root: Path
    plan: Plan
    resources: ResourceSettings
    parallel_stages: int
    lock: int
    """File handle of the lock of runs, for the processes of the run."""
    observer: Observer = lambda _name, _outcome: None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """Outcomes by stage; complete when the flow run has ended."""
    attempts: Counter[str] = field(default_factory=Counter)
    stopped: threading.Event = field(default_factory=threading.Event)
    """Event to start no further stage."""
    signal: int | None = None
    """Signal that stopped it."""
    cancelled: bool = False
    """Whether somebody cancelled it in Prefect."""


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
    selection = Selection(stages, parse_only(only))
    values = parse_overrides(overrides)
    root = project_folder(folder)
    if values:
        check_recordable(root)
    with chdir(root), run_lock(root, wait) as lock, overridden(root, values):
        resources = checked_resources(root)
        close_private_folders(root)
        drop_dead_locks(root)
        drop_torn_entries(root)
        with open_repository(root) as repository:
            plan = make_plan(repository, selection)
        check_step_names(resources, plan.steps)
        run = Run(root, plan, resources, jobs or resources.stages_at_once, lock)
        try:
            yield run
        finally:
            if values and (name := record_experiment(root, values, run.outcomes, plan)):
                say(
                    f"recorded as the DVC experiment {name!r}; params.yaml is as before. 'dvc exp apply {name}' "
                    "restores it, 'dvc exp show' compares"
                )


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


def missing_things(plan: Plan, root: Path) -> "list[Finding]":
    """Missing requirements of stages that will run and are not in DVC's cache; needs the project's folder."""
    stages = (stage for stage in plan.stages.values() if stage.action is Action.RUN and not stage.restorable)
    computed = [plan.graph.nodes[stage.name] for stage in stages if stage.name != CHECK_OF_PARAMETERS]
    if not computed:
        # Before the import of every step's settings, which takes longest if nothing is to be done.
        return []
    from tasks.doctor.data_findings import checks
    from tasks.doctor.finding import Finding
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    inputs = dict(_missing_inputs(computed, plan))
    findings, named = [], set[str]()
    for check in checks(read_parameters(root / DEFAULT_PATH), root):
        source = None if check.source is None else os.path.normpath(check.source)
        comes_later = source is not None and not os.path.exists(source) and source not in inputs
        if comes_later or not any(_concerns(check, source, node) for node in computed):
            continue
        finding = check.look()
        if finding.state == "missing":
            findings.append(finding)
            named.add(source or "")
    for path, name in inputs.items():
        if path not in named:
            remedy = f"put it there, then 'palimpsest add {path}' if it is private text"
            findings.append(Finding("data", name, "missing", f"its input {path!r} is not there", remedy))
    return findings


def refuse_missing(plan: Plan, root: Path) -> None:
    """Raise ``StageError`` with all missing requirements of stages that will run."""
    if missing := missing_things(plan, root):
        raise StageError(missing_text(missing))


def missing_text(missing: "list[Finding]") -> str:
    """Them in one line, with the remedies."""
    count = f"{len(missing)} things are missing: " if len(missing) > 1 else ""
    return f"no stage can start: {count}" + "; ".join(finding.text for finding in missing)


def _missing_inputs(computed: list[Node], plan: Plan) -> Iterator[tuple[str, str]]:
    """Missing inputs that nothing will make or restore, each with a stage that reads it; also added data missing
    in DVC's cache."""
    for node in computed:
        lost = (Kind.INPUT, "") if node.command else (Kind.OUTPUT, NOT_IN_CACHE)
        for change in plan.stages[node.name].changes:
            if change.kind is lost[0] and change.text.endswith(lost[1]) and not os.path.exists(change.path):
                yield os.path.normpath(change.subject), node.name


def _concerns(check: "Check", source: str | None, node: Node) -> bool:
    """Whether a stage reads the inputs of a check."""
    reads = any(check.key == key or check.key.startswith(f"{key}.") for key in node.parameters)
    return reads and (source is None or source in map(os.path.normpath, node.dependencies))


def check_step_names(resources: ResourceSettings, steps: Iterable[str]) -> None:
    """Raise ``ParameterError`` if a name or pattern fits no step of the graph: a limit must not be ignored."""
    steps = sorted(set(steps))
    named = [(f"resources.time_limits: {name!r}", name) for name in resources.time_limits]
    if resources.cluster is not None:
        named += [(f"resources.cluster.needs: {name!r}", name) for name in resources.cluster.needs]
    for tag, shared in resources.concurrency.items():
        named += [(f"resources.concurrency.{tag}.steps: {name!r}", name) for name in shared.steps]
    for where, name in named:
        if not any(fnmatchcase(step, name) for step in steps):
            known = f"{nearest(name, steps)}; there are: {', '.join(steps)}"
            raise ParameterError(f"{where} fits no step of dvc.yaml{known}")


def time_limit(resources: ResourceSettings, step: str) -> float | None:
    """The time limit of a step's stage in seconds, from the first entry that fits; ``None`` for no limit."""
    return first_that_fits(resources.time_limits, step)


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
