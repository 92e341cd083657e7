"""SIGKILL of a stage, of the flow with all that it does, and a disk that fills up, at moments over a run's length."""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml
from fault_place import GRAPH, Place, stages_of, used_kibibytes
from scratch_project import make_project
from small_disk import mounted, remount

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MOMENTS = range(int(os.environ.get("PALIMPSEST_FAULT_MOMENTS", "10")))
"""How many moments each process is killed at."""
MakePlace = Callable[[Path], Place]


@pytest.fixture(autouse=True, scope="module")
def _own_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """DVC's and Prefect's own files in one temporary folder for all trials, no calls home, and no server."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("PREFECT_", "MLFLOW_")):
                patch.delenv(name)
        patch.setenv("PREFECT_HOME", str(home / "prefect"))
        patch.setenv("DVC_SITE_CACHE_DIR", str(home / "dvc"))
        for name in ("DVC_NO_ANALYTICS", "DO_NOT_TRACK"):
            patch.setenv(name, "1")
        yield


@pytest.fixture(scope="module")
def make_place(tmp_path_factory: pytest.TempPathFactory) -> MakePlace:
    """A function that copies the small experiment, in which nothing has run, into a folder."""
    made = make_project(tmp_path_factory.mktemp("template") / "an experiment", GRAPH)
    parameters = yaml.safe_load(made.read("params.yaml"))
    parameters["resources"] |= {"parallel_stages": 2, "retry_seconds": 0.2}
    made.write("params.yaml", yaml.safe_dump(parameters, sort_keys=False))
    return lambda folder: Place(Path(shutil.copytree(made.folder, folder / "an experiment")))


@pytest.fixture(scope="module")
def length(make_place: MakePlace, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds of an undisturbed run."""
    place = make_place(tmp_path_factory.mktemp("undisturbed"))
    started = time.monotonic()
    assert place.palimpsest("run").returncode == 0
    seconds = time.monotonic() - started
    place.finish()
    return seconds


@pytest.fixture(scope="module")
def growth(make_place: MakePlace, tmp_path_factory: pytest.TempPathFactory) -> int:
    """KiB that an undisturbed run adds."""
    disk = tmp_path_factory.mktemp("undisturbed") / "a disk"
    with mounted(disk, 100_000):
        place = make_place(disk)
        before = used_kibibytes(disk)
        assert place.palimpsest("run").returncode == 0
        return used_kibibytes(disk) - before


@pytest.mark.parametrize("number", MOMENTS)
@pytest.mark.parametrize("fault", ["flow", "stage"])
def test_a_killed_run_is_finished_by_the_next(
    make_place: MakePlace, tmp_path: Path, length: float, fault: str, number: int
) -> None:
    """The whole flow; or DVC's process of a stage or one of its command, and the run itself tries that stage again."""
    place = make_place(tmp_path)
    after = random.Random(f"{fault} {number}").uniform(0.0, length)
    run = place.start("run")
    time.sleep(after)
    if fault == "flow":
        run.kill()
    while fault == "stage" and run.poll() is None:
        if there := sorted(stages_of(run), key=lambda process: process.pid):
            with suppress(psutil.NoSuchProcess):
                random.Random(number).choice(there).kill()
            break
    run.communicate()
    place.finish()


@pytest.mark.parametrize("number", MOMENTS)
def test_a_run_goes_on_once_a_full_disk_has_room(
    make_place: MakePlace, tmp_path: Path, growth: int, number: int
) -> None:
    """The checkout lies on a disk that fills up somewhere in the run; then space is made."""
    disk = tmp_path / "a disk"
    free = random.Random(f"disk {number}").randrange(0, growth, 4)
    with mounted(disk, 100_000):
        place = make_place(disk)
        remount(disk, f"size={used_kibibytes(disk) + free}k")
        done = place.palimpsest("run")
        said = done.stdout + done.stderr
        assert done.returncode in (0, 1), said
        assert "Traceback" not in said
        assert "internal error" not in said, said
        assert done.returncode == 0 or "disk is full" in said or "No space left" in said, said
        remount(disk, "size=100000k")
        place.finish()
