"""Fixtures: the small project in a folder whose path has a space, new or with everything up to date."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect_server import PASSWORD_VARIABLE, log_in
from scratch_project import GRAPH, Project, make_project

from flows.prefect_flow import prefect_api
from flows.stages.processes import Processes


@pytest.fixture(autouse=True)
def _quiet_tools(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC's and Prefect's own files in one temporary folder for all tests, and no calls home."""
    shared = tmp_path_factory.getbasetemp() / "tools"
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(shared / "dvc"))
    monkeypatch.setenv("PREFECT_HOME", str(shared / "prefect"))
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The small project, in which nothing has run yet."""
    return make_project(tmp_path / "a project", GRAPH)


@pytest.fixture(scope="session")
def finished_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project after ``dvc repro``, to be copied."""
    made = make_project(tmp_path_factory.mktemp("template") / "a project", GRAPH)
    made.dvc("repro")
    return made.folder


@pytest.fixture
def finished(finished_template: Path, tmp_path: Path) -> Project:
    """The small project in which everything is up to date."""
    shutil.copytree(finished_template, tmp_path / "a project")
    return Project(tmp_path / "a project")


@pytest.fixture
def committed(finished: Project) -> Project:
    """The small project in which everything is up to date, with a git commit."""
    finished.git("add", "--all")
    finished.git("commit", "--quiet", "-m", "start")
    return finished


@pytest.fixture(scope="module")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tests of a module, one after the other, that share a server."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def dvc_server(served_folder: Path) -> Iterator[Processes]:
    """A server that has imported DVC."""
    with Processes(served_folder) as processes:
        yield processes


@pytest.fixture
def served(served_folder: Path) -> Project:
    """The small project in the folder of the server, in which nothing has run yet."""
    for path in served_folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return make_project(served_folder, GRAPH)


@pytest.fixture(scope="session")
def prefect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prefect server that is there already, as PREFECT_API_URL would name it; with what other tests did there."""
    folder = tmp_path_factory.mktemp("prefect server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(folder / "home"))
        patch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
        (folder / "home").mkdir()
        processes = Processes(folder)
        server = prefect_api.TemporaryServer(processes, folder)
    with processes, pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefect_api, "START_SECONDS", 600.0)  # the machine may be busy
        url = server.wait()
        log_in(url, server.password)
        patch.setenv(PASSWORD_VARIABLE, server.password)
        yield url
