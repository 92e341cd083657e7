"""How a run's settings become its session: the same for ``palimpsest run`` and for a run that Prefect starts."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.executor import Executor, Observer, Outcome
from flows.plan import Plan
from flows.processes import Processes
from flows.session import Session, nobody
from flows.step_settings import retry_delays, tags, time_limit
from tasks.params import ResourceSettings


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
        stop_stages=executor.stop if executor is not None else lambda: None,
        tags_of=lambda step: tags(resources, step),
        tag_limits={tag: shared.limit for tag, shared in resources.concurrency.items()},
        retry_delays=retry_delays(resources),
        parameters=parameters or {},
        stage_environment=environment,
    )


def _nothing_runs(name: str) -> Outcome:
    raise RuntimeError(f"stage {name!r} was to run although the plan has nothing to do")
