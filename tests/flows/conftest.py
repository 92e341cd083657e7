"""Fixtures: the small project in a folder whose path has a space, new or with everything up to date."""

import shutil
from pathlib import Path

import pytest
from scratch_project import GRAPH, Project, make_project


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
