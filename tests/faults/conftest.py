"""Fixtures of the fault suite: the small experiment in a folder of each test."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from fault_place import GRAPH, Place
from scratch_project import make_project


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "faults" in item.path.parts:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(autouse=True, scope="session")
def _own_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """DVC's and Prefect's own files in one temporary folder for all trials, no calls home, and no server."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("PREFECT_", "MLFLOW_")):
                patch.delenv(name)
        patch.setenv("PREFECT_HOME", str(home / "prefect"))
        patch.setenv("DVC_SITE_CACHE_DIR", str(home / "dvc"))
        patch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
        for name in ("DVC_NO_ANALYTICS", "DO_NOT_TRACK"):
            patch.setenv(name, "1")
        yield


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment, in which nothing has run."""
    made = make_project(tmp_path_factory.mktemp("template") / "an experiment", GRAPH)
    parameters = yaml.safe_load(made.read("params.yaml"))
    parameters["resources"] |= {"parallel_stages": 2, "retry_seconds": 0.2}
    made.write("params.yaml", yaml.safe_dump(parameters, sort_keys=False))
    return made.folder


@pytest.fixture(scope="session")
def make_place(template: Path) -> Callable[[Path], Place]:
    """A function that copies the experiment into a folder."""
    return lambda folder: Place(Path(shutil.copytree(template, folder / "an experiment")))
