"""A run that Prefect starts, on a schedule or with a click, in the project's folder of a worker or of
``palimpsest serve``: it takes the lock, sets its overrides, makes the plan and has its own supervisor, as a run in a
terminal does. Ending its process, however that happens, ends its stages within seconds.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext
from pathlib import Path

from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from flows.checkout.overrides import checked_resources, overridden
from flows.checkout.run_lock import RunLock
from flows.graph.graph import open_repository, project_folder
from flows.graph.selection import Selection, parse_only
from flows.prefect_flow.abandoned_flow_run import note_flow_run
from flows.runs.preparation import plan_after_repair, refuse_missing
from flows.runs.recorded_experiment import check_recordable, record_experiment
from flows.runs.session import Session, make_session, prepare, session_open
from flows.stages.processes import Processes
from tasks.errors import ParameterError, ResourceError
from tasks.files.private_folders import close_private_folders
from tasks.settings.overrides import parse_overrides

FOLDER_VARIABLE = "PALIMPSEST_FOLDER"
"""Environment variable of a worker, or of the container that it starts: the project's folder."""


def enter_worker_folder() -> dict[str, str]:
    """The folder that a flow run works in, for Prefect; nothing is fetched.

    Raises ``ParameterError`` where the variable is not set, ``StageError`` where it names a folder outside a project.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        raise ParameterError(
            f"{FOLDER_VARIABLE} is not set, so this worker has no project to work in; set it to the folder of its "
            "clone, in the worker's environment or in the job variables of its pool"
        )
    return {"directory": str(project_folder(folder).resolve())}


LOOK_SECONDS = 5.0
"""How often a run looks whether another one in the same folder has ended."""


@contextmanager
def deployed_session(
    stages: Sequence[str],
    only: Sequence[str],
    overrides: Sequence[str],
    jobs: int | None,
    *,
    new_data_only: bool,
) -> Iterator[Session | None]:
    """The session of this flow run, open inside the block; ``None`` where it is for new data only and there is none."""
    logger = get_run_logger()
    root = project_folder(os.environ.get(FOLDER_VARIABLE, "."))
    note_flow_run(root, str(flow_run.id))
    selection = Selection(stages, parse_only(only))
    values = parse_overrides(overrides)
    if values:
        check_recordable(root)
    with chdir(root), _lock_when_free(root) as lock, overridden(root, values):
        resources = checked_resources(root)
        with open_repository(root) as repository:
            plan = plan_after_repair(repository, selection, resources, logger.info)
        logger.info(plan.summary())
        if new_data_only:
            from flows.graph.private_sources import changed_sources

            changed = changed_sources(plan, root)
            if not changed:
                yield None
                return
            logger.info("new data: %s", ", ".join(changed))
        refuse_missing(plan, root)
        close_private_folders(root)
        session: Session | None = None
        try:
            # With nothing to do there is no process to start.
            with nullcontext() if plan.nothing_to_do else Processes(root, inherited=[lock.handle]) as processes:
                session = make_session(
                    root,
                    plan,
                    processes,
                    resources,
                    parallel_stages=jobs or resources.parallel_stages,
                )
                session.shown = True
                if processes is not None:
                    prepare(processes, session)
                try:
                    with session_open(session):
                        yield session
                finally:
                    session.stop()
        finally:
            if values:
                name = record_experiment(root, values, session.outcomes if session is not None else {}, plan)
                logger.info("recorded as the DVC experiment %r: 'dvc exp apply %s' brings it back", name, name)


@contextmanager
def _lock_when_free(root: Path) -> Iterator[RunLock]:
    """The lock of runs, after any other run in the folder has ended."""
    waiting = False
    lock = RunLock(root)
    while True:
        try:
            lock.acquire()
            break
        except ResourceError as error:
            if not waiting:
                get_run_logger().info("waiting: %s", error)
                waiting = True
            time.sleep(LOOK_SECONDS)
    try:
        yield lock
    finally:
        lock.release()
