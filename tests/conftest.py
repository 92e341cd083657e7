"""One thread a test: two workers that each take both cores spend twenty times their work on waiting for each other.
And no GPU, but for the commands that ``test_gpu.py`` starts: what is counted and compared is a processor's."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
os.environ |= dict.fromkeys(VARIABLES, "1")  # read by NumPy and PyTorch when they are imported
os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(autouse=True, scope="session")
def _one_core() -> Iterator[None]:
    """Commands that take every core where nobody says how many threads take one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.command.available_cores", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier test has set is over."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "1")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="session")
def finished_experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment after ``palimpsest run``, at a path with a space; tests change a copy of it."""
    from made_once import made_once
    from small_experiment import make_finished

    return made_once(tmp_path_factory, "an experiment", make_finished)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow store without runs; tests write into a copy of it."""
    from made_once import made_once

    def make(folder: Path) -> None:
        from tasks.results.tracking.settings import TrackingSettings
        from tasks.results.tracking.tracking_store import locked_store

        folder.mkdir()
        with locked_store(TrackingSettings(uri=f"sqlite:///{folder / 'mlflow.db'}")):
            pass

    return made_once(tmp_path_factory, "empty store", make) / "mlflow.db"
