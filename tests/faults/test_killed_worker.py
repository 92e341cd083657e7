"""SIGKILL of a Prefect worker, alone or with the run that it has started, at moments over the length of the run."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_counts import MOMENTS, Trial
from fault_place import MakePlace, Place, kill_family, moment, wait_until
from fault_servers import ENDED, Server, check_no_run_goes_on
from prefect_server import ask

from flows.prefect_flow.abandoned_flow_run import PENDING_SECONDS

POOL = "palimpsest"


def start_worker(place: Place) -> subprocess.Popen[bytes]:
    variables = {"PALIMPSEST_FOLDER": str(place.folder), "PREFECT_WORKER_QUERY_SECONDS": "1"}
    return place.start("worker", "start", "--pool", POOL, "--limit", "1", module="prefect", **variables)


@pytest.fixture(scope="module")
def deployed(
    template: Path, shared_home: dict[str, str], prefect: Server, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A pool with the deployment ``once``; its number."""
    folder = tmp_path_factory.mktemp("deploying") / "an experiment"
    shutil.copytree(template, folder)
    place = Place(folder, shared_home | {"PREFECT_API_URL": f"{prefect.address}/api"})
    assert place.start("work-pool", "create", POOL, "--type", "process", module="prefect").wait(300) == 0
    assert place.start("--no-prompt", "deploy", "--name", "once", module="prefect").wait(300) == 0, (
        place.log.read_text()
    )
    return str(ask(f"{prefect.address}/api", "/deployments/name/experiment/once", None)["id"])


def run_of(prefect: Server, deployment: str) -> str:
    path = f"/deployments/{deployment}/create_flow_run"
    made = ask(f"{prefect.address}/api", path, {"parameters": {"stages": ["table"]}})
    return str(made["id"])


def state_of(prefect: Server, run: str) -> dict[str, Any]:
    state = ask(f"{prefect.address}/api", f"/flow_runs/{run}", None)["state"]
    assert isinstance(state, dict)
    return state


def ended(prefect: Server, run: str) -> Callable[[], bool]:
    return lambda: state_of(prefect, run)["type"] in ENDED


@pytest.fixture(scope="module")
def length(
    template: Path,
    shared_home: dict[str, str],
    prefect: Server,
    deployed: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> float:
    """Seconds from the request to the end of an undisturbed run, with a worker that waits for it."""
    folder = tmp_path_factory.mktemp("undisturbed") / "an experiment"
    shutil.copytree(template, folder)
    place = Place(folder, shared_home | {"PREFECT_API_URL": f"{prefect.address}/api"})
    worker = start_worker(place)
    try:
        started = time.monotonic()
        run = run_of(prefect, deployed)
        wait_until(ended(prefect, run), 600, lambda: place.log.read_text(errors="replace")[-4000:])
        assert state_of(prefect, run)["type"] == "COMPLETED"
        return time.monotonic() - started
    finally:
        kill_family(worker.pid)
        worker.wait()


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_killed_worker(
    template: Path, make_place: MakePlace, prefect: Server, deployed: str, length: float, trial: Trial, number: int
) -> None:
    place = make_place(template, PREFECT_API_URL=f"{prefect.address}/api")
    after = moment("worker", number, length)
    whole = number % 2 == 1
    trial.note(fault="SIGKILL of a worker", after_seconds=round(after, 2), length_seconds=round(length, 2))
    trial.note(with_its_run=whole)
    worker = start_worker(place)
    first = run_of(prefect, deployed)
    time.sleep(after)
    trial.note(met_work=not ended(prefect, first)())
    if whole:
        kill_family(worker.pid)
    else:
        worker.kill()
    worker.wait()
    trial.note(finished_before=len(place.recorded()))
    # Another worker in the same folder, and another run: what the first run still holds, it waits for.
    worker = start_worker(place)
    try:
        second = run_of(prefect, deployed)
        wait_until(ended(prefect, second), 600, lambda: place.log.read_text(errors="replace")[-4000:])
        assert state_of(prefect, second)["type"] == "COMPLETED", state_of(prefect, second)
        if state_of(prefect, first)["type"] == "PENDING":
            # Accepted and never started. Once it is clear that nobody will, the next run that starts ends it.
            trial.note(never_started=True)
            time.sleep(PENDING_SECONDS)
            third = run_of(prefect, deployed)
            wait_until(ended(prefect, third), 600, lambda: place.log.read_text(errors="replace")[-4000:])
        wait_until(ended(prefect, first), 120, lambda: str(state_of(prefect, first)))
    finally:
        kill_family(worker.pid)
        worker.wait()
    place.finish("table")
    check_no_run_goes_on(prefect.address)
