import shutil

import pytest
from handmade_experiment import FEW, make_experiment

from tasks.cli import main


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """A folder with handmade reports, in which the test runs."""
    folder = make_experiment(tmp_path / "an experiment")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return folder


@pytest.fixture
def summarised(experiment):
    """The same, summarised."""
    assert main(["summarise"]) == 0
    return experiment


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory):
    """An MLflow store without runs, made once: making one takes a second."""
    from tasks.results.tracking.settings import TrackingSettings
    from tasks.results.tracking.tracking_store import locked_store

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    with locked_store(TrackingSettings(uri=f"sqlite:///{path}")):
        pass
    return path


@pytest.fixture
def few(tmp_path, monkeypatch):
    """A summarised experiment of four cells, without a tracking store."""
    folder = make_experiment(tmp_path / "few cells", **FEW)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main(["summarise"]) == 0
    return folder


@pytest.fixture
def tracked(few, empty_store):
    """The same with an empty store."""
    shutil.copy(empty_store, few / "mlflow.db")
    return few
