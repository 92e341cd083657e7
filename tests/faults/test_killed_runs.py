"""SIGKILL of a stage, and of the flow with all that it does, at moments over the length of a run."""

import random
import time
from pathlib import Path

import psutil
import pytest
from fault_counts import MOMENTS, Trial
from fault_place import MakePlace, kill, length_of, moment, stages_of


@pytest.fixture(scope="module")
def length(template: Path, shared_home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds of an undisturbed run."""
    import shutil

    from fault_place import Place

    folder = tmp_path_factory.mktemp("undisturbed") / "an experiment"
    shutil.copytree(template, folder)
    place = Place(folder, shared_home)
    seconds = length_of(lambda: place.start("run", "table"))
    place.check("table")
    return seconds


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_killed_flow(template: Path, make_place: MakePlace, length: float, trial: Trial, number: int) -> None:
    place = make_place(template)
    after = moment("flow", number, length)
    trial.note(fault="SIGKILL of a flow", after_seconds=round(after, 2), length_seconds=round(length, 2))
    run = place.start("run", "table")
    time.sleep(after)
    trial.note(met_work=run.poll() is None)
    run.kill()
    run.wait()
    trial.note(finished_before=len(place.recorded()))
    place.finish("table")


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_killed_stage(template: Path, make_place: MakePlace, length: float, trial: Trial, number: int) -> None:
    """DVC's process of the stage or a process of its command; the run itself tries such a stage again."""
    place = make_place(template)
    after = moment("stage", number, length)
    trial.note(fault="SIGKILL of a stage", after_seconds=round(after, 2), length_seconds=round(length, 2))
    generator = random.Random(number)
    run = place.start("run", "table")
    time.sleep(after)
    victim: psutil.Process | None = None
    while victim is None and run.poll() is None:
        there = sorted(stages_of(run), key=lambda process: process.pid)
        if there:
            victim = generator.choice(there)
            kill(victim)
    status = run.wait()
    trial.note(met_work=victim is not None, run_status=status, finished_before=len(place.recorded()))
    place.finish("table")
