"""Two clones with a worker each, a remote in a third folder, Prefect on a real PostgreSQL: one experiment, split."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from postgres_server import free_port, postgres_server

CHECKOUT = Path(__file__).parents[2]
CANARY = "Zyxwquill"
"""Stands in the raw text."""
CELLS = [f"{technique}-{method}" for technique in ("list", "tagger") for method in ("top_1", "top_k")]
SHARED = {"generic", "pretrain", "mask@list", "mask@tagger"}
SHARED |= {f"{step}@{cell}" for step in ("fill", "adapt", "evaluate") for cell in CELLS}
"""What a clone without the raw text may compute."""

STAGE = 'echo "begun {name} $PWD" >> "$COUNTS"; {command}; echo "done {name} $PWD" >> "$COUNTS"'
CELL = "${item.technique}-${item.method}"
MATRIX = {"technique": ["list", "tagger"], "method": ["top_1", "top_k"]}


def stage(name: str, command: str, deps: list[str], outs: list[Any], matrix: Any = None) -> dict[str, Any]:
    definition = {"cmd": STAGE.format(name=name, command=command), "deps": deps, "outs": outs}
    return {"matrix": matrix, **definition} if matrix else definition


def private(path: str) -> dict[str, Any]:
    return {path: {"push": False}}


GRAPH = {
    "stages": {
        "generic": stage(
            "generic", "mkdir -p out; cat generic.txt > out/generic.txt", ["generic.txt"], ["out/generic.txt"]
        ),
        "pretrain": stage(
            "pretrain", "sleep 3; cat out/generic.txt > out/pretrained.txt", ["out/generic.txt"], ["out/pretrained.txt"]
        ),
        "corpus": stage(
            "corpus", "cat private/raw.txt > private/corpus.txt", ["private/raw.txt"], [private("private/corpus.txt")]
        ),
        "mask": stage(
            "mask@${item.technique}",
            "sed s/Z[a-z]*/[MASK]/ private/corpus.txt > private/masked-${item.technique}.txt",
            ["private/corpus.txt"],
            [private("private/masked-${item.technique}.txt")],
            {"technique": MATRIX["technique"]},
        ),
        "fill": stage(
            f"fill@{CELL}",
            f"mkdir -p out/filled; (sed s/.MASK./Alice/ private/masked-${{item.technique}}.txt; echo {CELL}) "
            f"> out/filled/{CELL}.txt",
            ["private/masked-${item.technique}.txt"],
            [f"out/filled/{CELL}.txt"],
            MATRIX,
        ),
        "adapt": stage(
            f"adapt@{CELL}",
            f"mkdir -p out/adapted/{CELL}; sleep $NAP; "
            f"cat out/pretrained.txt out/filled/{CELL}.txt > out/adapted/{CELL}/model",
            ["out/pretrained.txt", f"out/filled/{CELL}.txt"],
            [f"out/adapted/{CELL}"],
            MATRIX,
        ),
        "evaluate": stage(
            f"evaluate@{CELL}",
            f"mkdir -p out/reports; cat private/corpus.txt > private/scores-{CELL}.txt; "
            f"wc -c < out/adapted/{CELL}/model > out/reports/{CELL}.txt",
            ["private/corpus.txt", f"out/adapted/{CELL}"],
            [f"out/reports/{CELL}.txt", private(f"private/scores-{CELL}.txt")],
            MATRIX,
        ),
        "table": stage("table", "cat out/reports/*.txt > out/table.txt", ["out/reports"], ["out/table.txt"]),
    }
}


@pytest.fixture(scope="module")
def prefect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prefect server on PostgreSQL."""
    home = tmp_path_factory.mktemp("prefect server")
    with postgres_server() as database:
        port = free_port()
        environment = {
            **os.environ,
            "PREFECT_HOME": str(home),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"postgresql+asyncpg:{database.make_database('prefect')}",
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        }
        command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
        with open(home / "log", "w", encoding="utf-8") as log:
            server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            url = f"http://127.0.0.1:{port}/api"
            wait_until(lambda: answers(f"{url}/health"))
            yield url
        finally:
            kill_family(server.pid)
            server.wait()


class Place:
    """The two clones, their remote, and what was computed in them."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.counts = folder / "counts"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
            "PREFECT_API_URL": url,
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "DVC_SITE_CACHE_DIR": str(folder / "dvc"),
            "DVC_NO_ANALYTICS": "1",
            "DO_NOT_TRACK": "1",
            "COUNTS": str(self.counts),
            "NAP": "6",
        }
        self.started: list[subprocess.Popen[bytes]] = []

    def clone(self, name: str) -> Path:
        return self.folder / name

    def run(self, clone: str, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            command, cwd=self.clone(clone), env=self.environment, capture_output=True, text=True, timeout=400
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, clone: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{clone}.log", "ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.clone(clone),
                env={**self.environment, "PALIMPSEST_FOLDER": str(self.clone(clone)), **environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def records(self, kind: str) -> list[tuple[str, str]]:
        """Stage and clone of every command that has begun, or is done."""
        if not self.counts.exists():
            return []
        lines = [line.split(" ", 2) for line in self.counts.read_text(encoding="utf-8").splitlines()]
        return [(name, Path(folder).name) for what, name, folder in lines if what == kind]

    def begun_in(self, clone: str, step: str) -> bool:
        return any(name.startswith(step) and place == clone for name, place in self.records("begun"))

    def last_begun(self, clone: str) -> set[str]:
        """What a clone that runs two stages at once may have had in its hands: begun, or done and not pushed yet."""
        return {name for name, _ in [record for record in self.records("begun") if record[1] == clone][-2:]}

    def logs(self) -> str:
        return "\n".join(path.read_text(encoding="utf-8") for path in sorted(self.folder.glob("*.log")))


@pytest.fixture
def place(tmp_path: Path, prefect_url: str) -> Iterator[Place]:
    """Two clones of one commit; the private text lies in the first alone."""
    made = Place(tmp_path, prefect_url)
    first = made.clone("first clone")
    (first / ".dvc").mkdir(parents=True)
    remotes = "".join(f"['remote \"{name}\"']\n    url = {tmp_path / name}\n" for name in ("plain", "trusted"))
    (first / ".dvc" / "config").write_text(
        f"[core]\n    check_update = false\n    remote = plain\n{remotes}", encoding="utf-8"
    )
    (first / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n", encoding="utf-8")
    (first / ".gitignore").write_text("/private\n/out\n/.palimpsest\n", encoding="utf-8")
    (first / "dvc.yaml").write_text(yaml.safe_dump(GRAPH, sort_keys=False, width=1000), encoding="utf-8")
    (first / "generic.txt").write_text("a generic text\n", encoding="utf-8")
    shutil.copy(CHECKOUT / "prefect.yaml", first)
    parameters = yaml.safe_load((CHECKOUT / "params.yaml").read_text(encoding="utf-8"))
    parameters["resources"]["trusted_remote"] = "trusted"
    (first / "params.yaml").write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    made.run("first clone", "git", "init", "--quiet")
    made.run("first clone", "git", "add", "--all")
    made.run("first clone", "git", *identity, "commit", "--quiet", "-m", "start")
    made.run("first clone", "git", "clone", "--quiet", ".", str(made.clone("second clone")))
    (first / "private").mkdir()
    (first / "private" / "raw.txt").write_text(f"{CANARY} went home\n", encoding="utf-8")
    try:
        yield made
    finally:
        for process in made.started:
            kill_family(process.pid)
            process.wait()


def wait_until(done: Callable[[], bool], seconds: float = 240.0, said: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, said()
        time.sleep(0.2)


def answers(address: str) -> bool:
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=5)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def kill_family(pid: int) -> None:
    """What a power cut does: the process and everything below it is gone."""
    with suppress(psutil.NoSuchProcess):
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)


def check_finished(place: Place, killed: set[str]) -> None:
    """Everything computed once, the raw text on the trusted remote alone."""
    done = place.records("done")
    assert {name for name, _ in done} == SHARED | {"corpus", "table"}, place.logs()
    begun = [name for name, _ in place.records("begun")]
    assert {name for name in begun if begun.count(name) > 1} <= killed
    assert {clone for name, clone in done if name == "table"} == {"first clone"}
    table = (place.clone("first clone") / "out" / "table.txt").read_text(encoding="utf-8").split()
    assert len(table) == len(CELLS)
    place.run("first clone", "dvc", "push", "--run-cache")
    held = {
        name: [CANARY.encode() in path.read_bytes() for path in (place.folder / name).rglob("*") if path.is_file()]
        for name in ("plain", "trusted")
    }
    assert any(held["trusted"])
    assert len(held["plain"]) > 4
    assert not any(held["plain"])
    # What DVC itself thinks of the state.
    assert "up to date" in place.run("first clone", "dvc", "repro")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_workers_split_an_experiment_and_one_is_killed(place: Place) -> None:
    for pool in ("palimpsest", "palimpsest-join"):
        place.run("first clone", "prefect", "work-pool", "create", pool, "--type", "process", check=False)
    place.run("first clone", "prefect", "--no-prompt", "deploy", "--all")
    worker = ("prefect", "worker", "start", "--limit", "1", "--pool")
    # The second clone's stages take longer, so that it is killed in the middle of one.
    place.start("first clone", *worker, "palimpsest")
    helper = place.start("second clone", *worker, "palimpsest-join", NAP="60")
    place.run("first clone", "prefect", "deployment", "run", "experiment/once", "-p", "role=lead", "-p", "jobs=1")
    place.run("first clone", "prefect", "deployment", "run", "experiment/join", "-p", "jobs=2")
    wait_until(lambda: place.begun_in("second clone", "adapt"), said=place.logs)
    kill_family(helper.pid)
    killed = place.last_begun("second clone")
    wait_until(lambda: ("table", "first clone") in place.records("done"), said=place.logs)
    wait_until(lambda: "Finished in state" in place.logs(), said=place.logs)
    check_finished(place, killed)
    assert {name for name, clone in place.records("begun") if clone == "second clone"} <= SHARED


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_work_splits_and_a_killed_lead_goes_on_where_it_was(place: Place) -> None:
    # This time the second clone has the private text too.
    shutil.copytree(place.clone("first clone") / "private", place.clone("second clone") / "private")
    lead = place.start("first clone", "palimpsest", "run", "--share", "--jobs", "2")
    place.start("second clone", "palimpsest", "run", "--join", "--jobs", "2")
    wait_until(
        lambda: place.begun_in("first clone", "adapt") and place.begun_in("second clone", "adapt"), said=place.logs
    )
    kill_family(lead.pid)
    killed = place.last_begun("first clone")
    again = place.start("first clone", "palimpsest", "run", "--share", "--jobs", "2")
    assert again.wait(400) == 0, place.logs()
    check_finished(place, killed)
    assert {clone for _, clone in place.records("done")} == {"first clone", "second clone"}
