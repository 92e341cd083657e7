"""How a run's settings become its session: the same for ``palimpsest run`` and for a run that Prefect starts."""

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.plan import Action, Plan
from flows.runs.preparation import retry_delays, tags, time_limit
from flows.runs.session import Session, nobody
from flows.stages.executor import Executor, Observer, Outcome
from flows.stages.processes import Processes
from flows.stages.warm_commands import ENOUGH, arguments_of
from tasks.settings.resources import ResourceSettings


def make_session(
    folder: Path,
    plan: Plan,
    processes: Processes | None,
    resources: ResourceSettings,
    *,
    parallel_stages: int,
    stopped: threading.Event,
    observer: Observer = nobody,
    outcomes: dict[str, Outcome] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Session:
    """A session that runs the plan's stages in ``folder`` through DVC, with the limits of ``resources``.

    Without ``processes`` it can bring only a plan to its end in which nothing is to be done. ``outcomes`` is filled
    while the run works.
    """
    if processes is None and not plan.nothing_to_do:
        raise ValueError("a plan with something to do needs processes")

    def limit_of(stage: str) -> float | None:
        return time_limit(resources, plan.graph.nodes[stage].step)

    environment: dict[str, str] = {}
    executor = Executor(processes, folder, limit_of, environment) if processes is not None else None
    return Session(
        plan,
        executor.run if executor is not None else _nothing_runs,
        parallel_stages,
        observer,
        stopped,
        {} if outcomes is None else outcomes,
        trusted_remote=resources.trusted_remote,
        exchange=exchange_in(processes, folder, stopped, resources.trusted_remote)
        if processes is not None
        else _nothing_is_exchanged,
        stop_stages=executor.stop if executor is not None else lambda: None,
        tags_of=lambda step: tags(resources, step),
        tag_limits={tag: shared.limit for tag, shared in resources.concurrency.items()},
        retry_delays=retry_delays(resources),
        parameters=parameters or {},
        stage_environment=environment,
    )


def prepare(processes: Processes, plan: Plan) -> None:
    """Let the supervisor import now what the stages of this plan need; after whatever must start before."""
    to_do = (name for name, stage in plan.stages.items() if stage.action is not Action.UNCHANGED)
    commands = [name for name in to_do if arguments_of(plan.graph.nodes[name].command) is not None]
    if len(commands) >= ENOUGH:
        processes.prepare_commands()
    else:
        processes.prepare_dvc()


def exchange_in(
    processes: Processes, folder: Path, stopped: threading.Event, remote: str | None
) -> Callable[[Sequence[str]], tuple[int, str]]:
    """A function that runs ``flows.sharing.exchange`` with a remote in a process of its own and ends it when the run is
    stopped."""

    def exchange(asked: Sequence[str]) -> tuple[int, str]:
        what, *rest = asked
        arguments = [what, str(remote), *rest]
        log = folder / STATE_FOLDER / "logs" / f"exchange-{uuid.uuid4().hex[:8]}.log"
        process = processes.start_module("flows.sharing.exchange", arguments, log)
        while (status := process.wait(0.5)) is None:
            if stopped.is_set():
                processes.stop(process)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        log.unlink(missing_ok=True)
        errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
        return status, errors[-1] if errors else f"the exchange ended with status {status}"

    return exchange


def _nothing_is_exchanged(_arguments: Sequence[str]) -> tuple[int, str]:
    raise RuntimeError("something was to be exchanged although the plan has nothing to do")


def _nothing_runs(name: str) -> Outcome:
    raise RuntimeError(f"stage {name!r} was to run although the plan has nothing to do")
