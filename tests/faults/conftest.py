"""Fixtures of the fault suite: the small experiment, and the record of what was tried."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_counts import Trial
from fault_place import MakePlace, Place, make_template


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "faults" in item.path.parts:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(1800))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":  # type: ignore[attr-defined]
        item.stash[HELD] = report.passed  # type: ignore[attr-defined]
    return report


HELD = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment, in which nothing has run."""
    return make_template(tmp_path_factory.mktemp("template") / "an experiment")


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {
        "PREFECT_HOME": str(home / "prefect"),
        "DVC_SITE_CACHE_DIR": str(home / "dvc"),
    }


@pytest.fixture
def make_place(tmp_path: Path, shared_home: dict[str, str]) -> MakePlace:
    """A function that copies the experiment into a folder of this test."""

    def make(source: Path, name: str = "an experiment", **environment: str) -> Place:
        shutil.copytree(source, tmp_path / name)
        return Place(tmp_path / name, shared_home | environment)

    return make


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    """The record of one fault; the test says which with ``note(fault=…)``."""
    made = Trial(request.node.callspec.params.get("number", 0) if hasattr(request.node, "callspec") else 0)
    yield made
    if HELD in request.node.stash:
        made.write(held=request.node.stash[HELD])
