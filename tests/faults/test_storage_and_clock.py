"""A full disk, a store that cannot be written, a clock that is set back, and a damaged file of DVC's cache."""

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from fault_counts import MOMENTS, Trial
from fault_place import OUTPUTS, RUNS, MakePlace, Place
from fault_servers import Server
from small_disk import mounted, remount

DAY = 86_400


def reasons(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a user is told: the lines of failed stages, and of errors."""
    lines = (done.stdout + done.stderr).splitlines()
    return [" ".join(line.split()) for line in lines if line.startswith(("failed", "palimpsest: "))]


def used_kibibytes(folder: Path) -> int:
    state = os.statvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize // 1024


@pytest.fixture(scope="module")
def growth(
    template: Path, shared_home: dict[str, str], prefect: Server, tmp_path_factory: pytest.TempPathFactory
) -> int:
    """KiB that an undisturbed run adds."""
    disk = tmp_path_factory.mktemp("undisturbed") / "a disk"
    with mounted(disk, 100_000):
        shutil.copytree(template, disk / "an experiment")
        before = used_kibibytes(disk)
        place = Place(disk / "an experiment", shared_home | {"PREFECT_API_URL": f"{prefect.address}/api"})
        done = place.run("run", "table")
        assert done.returncode == 0, done.stderr
        return used_kibibytes(disk) - before


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_full_disk(
    template: Path, shared_home: dict[str, str], tmp_path: Path, prefect: Server, growth: int, trial: Trial, number: int
) -> None:
    """The checkout lies on a disk that fills up somewhere in the run; then space is made."""
    disk = tmp_path / "a disk"
    free = random.Random(f"disk {number}").randrange(0, growth, 4)
    trial.note(fault="a full disk", free_kibibytes=free, needed_kibibytes=growth)
    with mounted(disk, 100_000):
        shutil.copytree(template, disk / "an experiment")
        remount(disk, f"size={used_kibibytes(disk) + free}k")
        place = Place(disk / "an experiment", shared_home | {"PREFECT_API_URL": f"{prefect.address}/api"})
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


@pytest.mark.parametrize("what", ["mlflow", "cache"])
def test_a_read_only_store(tabled: Path, make_place: MakePlace, prefect: Server, trial: Trial, what: str) -> None:
    """MLflow's store, or DVC's cache, on a disk that nothing can be written to; then it can again."""
    place = make_place(tabled, PREFECT_API_URL=f"{prefect.address}/api")
    trial.note(fault=f"a read-only {what} store")
    disk = place.folder / ".dvc" / "cache" if what == "cache" else place.folder / "mlflow store"
    kept = shutil.copytree(disk, place.folder.parent / "kept") if disk.exists() else None
    with mounted(disk, 50_000):
        if kept is not None:
            shutil.copytree(kept, disk, dirs_exist_ok=True)
        store = disk / "mlflow.db" if what == "mlflow" else place.folder / "mlflow.db"
        place.environment["MLFLOW_TRACKING_URI"] = f"sqlite:///{store}"
        target = "publish"
        if what == "cache":
            (place.folder / "in.txt").write_text("two\n")
            target = "table"
        remount(disk, "ro")
        done = place.run("run", target)
        trial.note(met_work=done.returncode != 0, run_status=done.returncode, said=reasons(done))
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        remount(disk, "rw")
        if what == "cache":
            (place.folder / "in.txt").write_text("one\n")
        place.finish(target)
        if what == "mlflow":
            check_runs(store)


def check_runs(store: Path) -> None:
    """One finished run for each cell."""
    with sqlite3.connect(store) as tables:
        assert tables.execute("select status, count(*) from runs group by 1").fetchall() == [("FINISHED", RUNS)]
        keys = tables.execute("select count(distinct value) from tags where key = 'palimpsest.key'").fetchone()
        assert keys == (RUNS,)


@pytest.fixture(scope="session")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that shifts the wall clock of the processes that load it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("setting a clock back needs a C compiler")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).with_name("clock_offset.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_clock_set_back(
    template: Path, make_place: MakePlace, prefect: Server, clock: Path, trial: Trial, number: int
) -> None:
    """An hour to a year, in the middle of a run; a rerun does nothing again, and a changed input is still noticed."""
    place = make_place(template, PREFECT_API_URL=f"{prefect.address}/api")
    generator = random.Random(f"clock {number}")
    back = int(generator.choice([3600, DAY, 30 * DAY, 365 * DAY]) * generator.uniform(0.5, 1.0))
    trial.note(fault="a clock set back", seconds_back=back)
    offset = place.folder.parent / "offset"
    offset.write_text("0")
    place.environment |= {"LD_PRELOAD": str(clock), "CLOCK_OFFSET_FILE": str(offset)}
    stages = generator.randrange(1, 8)
    run = place.start("run", "table")
    while run.poll() is None and len(place.recorded()) < stages:
        time.sleep(0.05)
    trial.note(met_work=run.poll() is None)
    offset.write_text(str(-back))
    trial.note(run_status=run.wait(600), finished_before=len(place.recorded()))
    assert run.returncode == 0, place.log.read_text(encoding="utf-8")
    assert set(place.finish("table").values()) == {"unchanged"}
    # A file that is written now is older than all that was made before.
    (place.folder / "in.txt").write_text("two\n")
    os.utime(place.folder / "in.txt", (time.time() - back,) * 2)
    assert place.run("run", "table").returncode == 0
    assert (place.folder / "raw.txt").read_text() == "two\ntwo\n"


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_damaged_cache_file(tabled: Path, make_place: MakePlace, prefect: Server, trial: Trial, number: int) -> None:
    """A byte of a cached output is wrong, and the output itself is gone: it is computed, not restored."""
    place = make_place(tabled, PREFECT_API_URL=f"{prefect.address}/api")
    generator = random.Random(f"cache {number}")
    path = generator.choice(sorted(OUTPUTS))
    name = hashlib.md5(OUTPUTS[path].encode()).hexdigest()
    cached = place.folder / ".dvc" / "cache" / "files" / "md5" / name[:2] / name[2:]
    content = bytearray(cached.read_bytes())
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    mode = cached.stat().st_mode & 0o777
    cached.chmod(0o600)
    cached.write_bytes(content)
    cached.chmod(mode)
    for output in OUTPUTS:
        if hashlib.md5(OUTPUTS[output].encode()).hexdigest() == name:
            (place.folder / output).unlink()
    if number % 2:
        (place.folder / "dvc.lock").unlink()
    trial.note(fault="a damaged cache file", met_work=True, without_record=bool(number % 2))
    done = place.run("run", "table", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    place.check("table")
    assert hashlib.md5(cached.read_bytes()).hexdigest() == name
