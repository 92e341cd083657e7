"""Experiments whose reports are written by hand, each made once; a test that changes one has a copy."""

import json
import shutil

import pytest
from handmade_experiment import FEW, make_experiment

from tasks.cli import main


def run(folder, *commands):
    """The folder after the commands ran in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        for command in commands:
            assert main([command]) == 0
    return folder


@pytest.fixture(scope="session")
def summarised(tmp_path_factory):
    """Twenty cells, summarised; tests only read it."""
    return run(make_experiment(tmp_path_factory.mktemp("summarised")), "summarise")


@pytest.fixture(scope="session")
def rows(summarised):
    """The rows of its summary, by technique and method."""
    found = json.loads((summarised / "results" / "summary.json").read_text(encoding="utf-8"))
    return {(row["technique"], row["method"]): row for row in found}


@pytest.fixture(scope="session")
def summarised_few(tmp_path_factory):
    """Four cells, summarised."""
    return run(make_experiment(tmp_path_factory.mktemp("few"), **FEW), "summarise")


def copied(made, place, *stores):
    """A copy of an experiment, with its own address of the store."""
    folder = shutil.copytree(made, place / "an experiment")
    parameters = folder / "params.yaml"
    text = parameters.read_text(encoding="utf-8").replace(str(made), str(folder))
    parameters.write_text(text, encoding="utf-8")
    for store in stores:
        shutil.copy(store, folder / "mlflow.db")
    return folder


@pytest.fixture
def enter(tmp_path, monkeypatch):
    """Copies an experiment for a test that changes it, and makes the copy the current folder."""

    def enter(*made):
        folder = copied(made[0], tmp_path, *made[1:])
        monkeypatch.chdir(folder)
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        return folder

    return enter


@pytest.fixture(scope="session")
def published_once(summarised_few, empty_store, tmp_path_factory):
    """Four cells and the store with their runs."""
    return run(copied(summarised_few, tmp_path_factory.mktemp("published"), empty_store), "publish")


@pytest.fixture
def experiment(summarised, enter):
    """Twenty cells, summarised."""
    return enter(summarised)


@pytest.fixture
def few(summarised_few, enter):
    """Four cells, summarised, without a tracking store."""
    return enter(summarised_few)


@pytest.fixture
def tracked(summarised_few, empty_store, enter):
    """Four cells and an empty store."""
    return enter(summarised_few, empty_store)


@pytest.fixture
def published(published_once, enter):
    """Four cells and the store with their runs."""
    return enter(published_once)
