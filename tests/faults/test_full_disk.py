"""A disk that fills up during a run."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from fault_counts import MOMENTS, Trial
from fault_place import Place
from small_disk import mounted, remount


def reasons(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a user is told: the lines of failed stages, and of errors."""
    lines = (done.stdout + done.stderr).splitlines()
    return [" ".join(line.split()) for line in lines if line.startswith(("failed", "palimpsest: "))]


def used_kibibytes(folder: Path) -> int:
    state = os.statvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize // 1024


@pytest.fixture(scope="module")
def growth(template: Path, shared_home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> int:
    """KiB that an undisturbed run adds."""
    disk = tmp_path_factory.mktemp("undisturbed") / "a disk"
    with mounted(disk, 100_000):
        shutil.copytree(template, disk / "an experiment")
        before = used_kibibytes(disk)
        place = Place(disk / "an experiment", shared_home)
        done = place.run("run", "table")
        assert done.returncode == 0, done.stderr
        return used_kibibytes(disk) - before


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_full_disk(
    template: Path, shared_home: dict[str, str], tmp_path: Path, growth: int, trial: Trial, number: int
) -> None:
    """The checkout lies on a disk that fills up somewhere in the run; then space is made."""
    disk = tmp_path / "a disk"
    free = random.Random(f"disk {number}").randrange(0, growth, 4)
    trial.note(fault="a full disk", free_kibibytes=free, needed_kibibytes=growth)
    with mounted(disk, 100_000):
        shutil.copytree(template, disk / "an experiment")
        remount(disk, f"size={used_kibibytes(disk) + free}k")
        place = Place(disk / "an experiment", shared_home)
        done = place.run("run", "table")
        said = done.stdout + done.stderr
        trial.note(met_work=done.returncode != 0, run_status=done.returncode, said=reasons(done))
        assert done.returncode in (0, 1), said
        assert "Traceback" not in said
        assert "internal error" not in said, said
        assert done.returncode == 0 or "disk is full" in said or "No space left" in said, said
        remount(disk, "size=100000k")
        trial.note(finished_before=len(place.recorded()))
        place.log.touch()
        place.finish("table")
