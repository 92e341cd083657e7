"""What comes before the first stage: what a killed run left is put right, the plan made, what is missing told.

DVC keeps the paths that its processes read and write in ``.dvc/tmp/rwlock`` and drops entries of processes that are
gone. Three cases it does not see: a killed process that nobody has collected (usual in containers), a number that
the system has given to another process since, and a file cut off in the middle because its writer was killed. A
``dvc repro`` also writes ``dvc.lock`` in place, so a kill at that moment leaves part of it; the results are still in
DVC's cache, and every stage is restored from there once the torn file is out of the way.

What stages that will run lack is told before any of them starts, by the checks of ``palimpsest doctor`` as far as such
a stage reads what they are about. An input that no stage makes is missed whatever it is.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.changes import NOT_IN_CACHE, Kind
from flows.graph.graph import Node
from flows.graph.plan import Action, Plan
from flows.graph.selection import Selection
from flows.stages.single_lock_entry import PARTIAL
from flows.stages.supervisor import NAME_IN_LOCKS
from tasks.errors import ParameterError, ResourceError, StageError
from tasks.parameters.cells_command import STAGE as CHECK_OF_PARAMETERS
from tasks.settings.resources import ResourceSettings
from tasks.spelling import nearest

if TYPE_CHECKING:
    from dvc.repo import Repo

    from tasks.doctor.finding import Check, Finding

Entry = TypeVar("Entry")


def missing_things(plan: Plan, root: Path) -> "list[Finding]":
    """What the stages lack that will run and are not in DVC's cache; to be called in the project's folder."""
    stages = (stage for stage in plan.stages.values() if stage.action is Action.RUN and not stage.restorable)
    computed = [plan.graph.nodes[stage.name] for stage in stages if stage.name != CHECK_OF_PARAMETERS]
    if not computed:
        # Before the settings of every step are imported, which takes longer than all else where nothing is to be done.
        return []
    from tasks.doctor.data_findings import checks
    from tasks.doctor.finding import Finding
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    inputs = dict(_missing_inputs(computed, plan))
    findings, told = [], set[str]()
    for check in checks(read_parameters(root / DEFAULT_PATH), root):
        source = None if check.source is None else os.path.normpath(check.source)
        comes_later = source is not None and not os.path.exists(source) and source not in inputs
        if comes_later or not any(_concerns(check, source, node) for node in computed):
            continue
        finding = check.look()
        if finding.state == "missing":
            findings.append(finding)
            told.add(source or "")
    for path, name in inputs.items():
        if path not in told:
            remedy = f"put it there, then 'palimpsest add {path}' if it is private text"
            findings.append(Finding("data", name, "missing", f"its input {path!r} is not there", remedy))
    return findings


def refuse_missing(plan: Plan, root: Path) -> None:
    """``StageError`` with everything that stages lack which will run."""
    if missing := missing_things(plan, root):
        raise StageError(missing_text(missing))


def missing_text(missing: "list[Finding]") -> str:
    """In one line, with the remedies."""
    count = f"{len(missing)} things are missing: " if len(missing) > 1 else ""
    return f"no stage can start: {count}" + "; ".join(finding.text for finding in missing)


def _missing_inputs(computed: list[Node], plan: Plan) -> Iterator[tuple[str, str]]:
    """Inputs that are not there and that nothing brings, each with a stage that reads it; also added data that DVC has
    not in its cache."""
    for node in computed:
        lost = (Kind.INPUT, "") if node.command else (Kind.OUTPUT, NOT_IN_CACHE)
        for change in plan.stages[node.name].changes:
            if change.kind is lost[0] and change.text.endswith(lost[1]) and not os.path.exists(change.path):
                yield os.path.normpath(change.subject), node.name


def _concerns(check: "Check", source: str | None, node: Node) -> bool:
    """Whether a stage reads what a check is about."""
    reads = any(check.key == key or check.key.startswith(f"{key}.") for key in node.parameters)
    return reads and (source is None or source in map(os.path.normpath, node.dependencies))


def release_dead_locks(repository: "Repo") -> list[str]:
    """Remove locks whose holders are gone; returns what was done, one sentence each.

    Touches nothing that a living DVC process holds.
    """
    with repository.lock:
        # Whoever wrote this held the lock and is gone.
        Path(repository.root_dir, f"dvc.lock{PARTIAL}").unlink(missing_ok=True)
        _remove_cut_entries(Path(repository.cache.legacy.path) / "runs")
        if _repair_read_write_locks(repository):
            return ["removed locks that a killed DVC process had left"]
    return []


def set_torn_record_aside(repository: "Repo") -> list[str]:
    """Move a ``dvc.lock`` that cannot be read out of the way; returns what was done, one sentence each.

    ``StageError`` where it holds an unresolved merge, which only its owner can settle.
    """
    from dvc.dvcfile import Lockfile
    from dvc.exceptions import DvcException

    path = Path(repository.root_dir) / "dvc.lock"
    with repository.lock:
        if not path.exists():
            return []
        try:
            Lockfile(repository, str(path)).load()
            return []
        except DvcException:
            pass
        if b"<<<<<<<" in path.read_bytes():
            raise StageError("dvc.lock has an unresolved merge; settle it with git, then run this again")
        aside = Path(STATE_FOLDER) / f"dvc.lock.torn-{time.strftime('%Y%m%d-%H%M%S')}"
        (Path(repository.root_dir) / STATE_FOLDER).mkdir(exist_ok=True, mode=0o700)
        os.replace(path, Path(repository.root_dir) / aside)
    return [
        f"dvc.lock was cut off when a DVC process was killed; it is kept as {aside}, and finished stages are restored "
        "from DVC's cache"
    ]


def _remove_cut_entries(runs: Path) -> None:
    """Remove what a full disk leaves of an entry in DVC's cache of runs, a file that does not end or a folder without
    one: DVC takes the file away itself, and stumbles over the folder."""
    for file in runs.glob("*/*/*"):
        if not file.read_bytes().endswith(b"\n"):
            file.unlink()
    for folder in runs.glob("*/*"):
        with suppress(OSError):
            folder.rmdir()  # no folder that holds anything


def _repair_read_write_locks(repository: "Repo") -> bool:
    from dvc.lock import LockError, make_lock
    from dvc.rwlock import RWLOCK_FILE, RWLOCK_LOCK, SCHEMA
    from voluptuous import Invalid

    folder = Path(repository.tmp_dir or ".dvc/tmp")
    path = folder / RWLOCK_FILE
    hardlink = repository.config["core"].get("hardlink_lock", False)
    guard = make_lock(str(folder / RWLOCK_LOCK), tmp_dir=str(folder), hardlink_lock=hardlink)
    try:
        with guard:
            if not path.exists():
                return False
            try:
                locks = SCHEMA(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, Invalid):
                # Writers hold the guard, so whoever left the file like this is gone.
                path.unlink()
                return True
            writers = {name: holder for name, holder in locks["write"].items() if _holds(holder)}
            readers = {name: [one for one in holders if _holds(one)] for name, holders in locks["read"].items()}
            readers = {name: holders for name, holders in readers.items() if holders}
            if writers == locks["write"] and readers == locks["read"]:
                return False
            path.write_text(json.dumps({"write": writers, "read": readers}), encoding="utf-8")
            return True
    except LockError:
        raise ResourceError(f"another DVC process holds {str(path)!r}; wait for it to end and run this again") from None


def _holds(holder: dict[str, Any]) -> bool:
    """Whether the process that the entry names still lives and is the one that made it.

    DVC notes its command line; a process that has the number now but another command line is a later one.
    """
    try:
        process = psutil.Process(holder["pid"])
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return False
        running = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
    # The noted command starts with the script's path, the running one may start with the interpreter's.
    noted = holder["cmd"].split()
    if not running or not noted:
        return True
    if noted[0] == NAME_IN_LOCKS:
        return any(os.path.basename(part) == "supervisor.py" for part in running)
    return " ".join(noted[1:]) in " ".join(" ".join(running).split())


def check_step_names(resources: ResourceSettings, steps: Iterable[str]) -> None:
    """``ParameterError`` where a name or pattern fits no step of the graph: a limit must not miss in silence."""
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
    """Seconds that a stage of the step may take, from the first entry that fits; ``None`` for no limit."""
    return first_that_fits(resources.time_limits, step)


def first_that_fits(entries: Mapping[str, Entry], step: str) -> Entry | None:
    """The first entry whose name, in which ``*`` and ``?`` may stand, fits the step; ``None`` where none does."""
    return next((entry for name, entry in entries.items() if fnmatchcase(step, name)), None)


def tags(resources: ResourceSettings, step: str) -> list[str]:
    """The Prefect tags of the step, in the order of the settings."""
    return [
        tag for tag, shared in resources.concurrency.items() if any(fnmatchcase(step, name) for name in shared.steps)
    ]


def retry_delays(resources: ResourceSettings) -> list[float]:
    """Seconds before each further try, each twice the one before."""
    return [resources.retry_seconds * 2**number for number in range(resources.retries)]


def say_on_stderr(sentence: str) -> None:
    """Tell the user what was put right."""
    print(f"palimpsest: {sentence}", file=sys.stderr)


def plan_after_repair(
    repository: "Repo",
    selection: Selection,
    resources: ResourceSettings | None,
    say: Callable[[str], None] = say_on_stderr,
) -> Plan:
    """The plan, after what killed processes left behind has been put right. Only with the lock of runs.

    ``ParameterError`` where ``resources`` names a step that the graph does not have; ``None`` is not looked at.
    """
    from dvc.exceptions import DvcException

    from flows.graph.plan import make_plan

    done = release_dead_locks(repository)
    try:
        plan = make_plan(repository, selection)
    except DvcException:
        aside = set_torn_record_aside(repository)
        if not aside:
            raise
        done += aside
        plan = make_plan(repository, selection)
    if resources is not None:
        check_step_names(resources, plan.steps)
    for sentence in done:
        say(sentence)
    return plan
