"""SIGKILL of Prefect's server, of MLflow's server and of PostgreSQL below both, while a run works with them."""

import shutil
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from fault_counts import MOMENTS, Trial
from fault_place import RUNS, MakePlace, Place, length_of, moment
from fault_servers import (
    PostgresServer,
    Server,
    check_no_run_goes_on,
    kill_postgres,
    mlflow_server,
    prefect_server,
    restart_postgres,
)
from postgres_server import postgres_server


def disturbed(
    place: Place, target: str, trial: Trial, after: float, break_it: Callable[[], None], mend: Callable[[], None]
) -> None:
    """Run, break something after a while, mend it a second later, and wait for the end of the run."""
    run = place.start("run", target)
    time.sleep(after)
    trial.note(met_work=run.poll() is None)
    break_it()
    time.sleep(1)
    mend()
    trial.note(run_status=run.wait(600), finished_before=len(place.recorded()))


@pytest.fixture(scope="module")
def undisturbed(shared_home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., float]:
    """A function that measures a run of a copy of an experiment."""

    def measure(source: Path, target: str, **environment: str) -> float:
        folder = tmp_path_factory.mktemp("undisturbed") / "an experiment"
        shutil.copytree(source, folder)
        place = Place(folder, shared_home | environment)
        return length_of(lambda: place.start("run", target))

    return measure


@pytest.fixture(scope="module")
def length(template: Path, prefect: Server, undisturbed: Callable[..., float]) -> float:
    return undisturbed(template, "table", PREFECT_API_URL=f"{prefect.address}/api")


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_killed_prefect_server(
    template: Path, make_place: MakePlace, prefect: Server, length: float, trial: Trial, number: int
) -> None:
    place = make_place(template, PREFECT_API_URL=f"{prefect.address}/api")
    after = moment("prefect", number, length)
    trial.note(fault="SIGKILL of Prefect's server", after_seconds=round(after, 2), length_seconds=round(length, 2))
    disturbed(place, "table", trial, after, prefect.kill, prefect.start)
    place.finish("table")
    check_no_run_goes_on(prefect.address)


# MLflow -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("mlflow server")
    with mlflow_server(folder, f"sqlite:///{folder / 'mlflow.db'}") as server:
        yield server


@pytest.fixture(scope="module")
def publishing_length(tabled: Path, mlflow: Server, prefect: Server, undisturbed: Callable[..., float]) -> float:
    addresses = {"MLFLOW_TRACKING_URI": mlflow.address, "PREFECT_API_URL": f"{prefect.address}/api"}
    return undisturbed(tabled, "publish", **addresses)


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_killed_mlflow_server(
    tabled: Path,
    make_place: MakePlace,
    prefect: Server,
    mlflow: Server,
    publishing_length: float,
    trial: Trial,
    number: int,
) -> None:
    addresses = {"MLFLOW_TRACKING_URI": mlflow.address, "PREFECT_API_URL": f"{prefect.address}/api"}
    place = make_place(tabled, **addresses)
    name = own_experiment(place, f"server {number}")
    after = moment("mlflow", number, publishing_length)
    length = round(publishing_length, 2)
    trial.note(fault="SIGKILL of MLflow's server", after_seconds=round(after, 2), length_seconds=length)
    disturbed(place, "publish", trial, after, mlflow.kill, mlflow.start)
    place.finish("publish")
    check_published(mlflow.address, name)


def own_experiment(place: Place, name: str) -> str:
    """Let the place publish into an experiment of its own."""
    path = place.folder / "params.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["tracking"]["experiment"] = name
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return name


def check_published(address: str, experiment: str) -> None:
    """One finished run for each cell, each with its key and numbers."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=address)
    (found,) = [one for one in client.search_experiments() if one.name == experiment]
    runs = client.search_runs([found.experiment_id])
    assert len(runs) == RUNS
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len({run.data.tags["palimpsest.key"] for run in runs}) == RUNS
    assert all(run.data.metrics["perplexity"] > 1 for run in runs)


# PostgreSQL ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    if find_spec("psycopg2") is None:
        pytest.skip("MLflow reaches PostgreSQL through psycopg2, which is not installed")
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def on_postgres(database: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Prefect's and MLflow's servers on one PostgreSQL."""
    homes = [tmp_path_factory.mktemp(name) for name in ("prefect on postgres", "mlflow on postgres")]
    with (
        prefect_server(homes[0], database.make_database("prefect")) as prefect,
        mlflow_server(homes[1], f"postgresql:{database.make_database('mlflow')}") as mlflow,
    ):
        yield {"prefect": prefect, "mlflow": mlflow}


@pytest.fixture(scope="module")
def length_on_postgres(template: Path, on_postgres: dict[str, Server], undisturbed: Callable[..., float]) -> float:
    return undisturbed(template, "publish", **addresses_of(on_postgres))


def addresses_of(servers: dict[str, Server]) -> dict[str, str]:
    return {"MLFLOW_TRACKING_URI": servers["mlflow"].address, "PREFECT_API_URL": f"{servers['prefect'].address}/api"}


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_killed_postgres(
    template: Path,
    make_place: MakePlace,
    database: PostgresServer,
    on_postgres: dict[str, Server],
    length_on_postgres: float,
    trial: Trial,
    number: int,
) -> None:
    place = make_place(template, **addresses_of(on_postgres))
    name = own_experiment(place, f"database {number}")
    after = moment("postgres", number, length_on_postgres)
    length = round(length_on_postgres, 2)
    trial.note(fault="SIGKILL of PostgreSQL", after_seconds=round(after, 2), length_seconds=length)
    disturbed(place, "publish", trial, after, lambda: kill_postgres(database), lambda: restart_postgres(database))
    place.finish("publish")
    check_no_run_goes_on(on_postgres["prefect"].address)
    check_published(on_postgres["mlflow"].address, name)
