"""A small experiment that is disturbed: its folder, its commands, and what must hold when it is finished."""

import json
import os
import random
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
import yaml

CHECKOUT = Path(__file__).parents[2]
MARK = "PALIMPSEST_FAULT_PLACE"
"""Environment variable by which every process of a place is known."""

TECHNIQUES, METHODS = ("list", "tagger"), ("top_1", "top_k")
GRAPH = """
stages:
  raw:
    cmd: sleep 0.2; cat in.txt in.txt > raw.txt
    deps: [in.txt]
    outs: [raw.txt]
  mask:
    matrix: {technique: [list, tagger]}
    cmd: sleep 0.2; mkdir -p masked; (cat raw.txt; echo ${item.technique}) > masked/${item.technique}.txt
    deps: [raw.txt]
    outs: ["masked/${item.technique}.txt"]
  fill:
    matrix: {technique: [list, tagger], method: [top_1, top_k]}
    cmd: sleep 0.2; mkdir -p filled; cat masked/${item.technique}.txt > filled/${item.technique}-${item.method}.txt
    deps: ["masked/${item.technique}.txt"]
    outs: ["filled/${item.technique}-${item.method}.txt"]
  table:
    cmd: sleep 0.2; cat filled/*.txt > table.txt
    deps: [filled]
    outs: [table.txt]
"""
MASKED = {f"masked/{technique}.txt": f"one\none\n{technique}\n" for technique in TECHNIQUES}
FILLED = {f"filled/{name}-{method}.txt": f"one\none\n{name}\n" for name in TECHNIQUES for method in METHODS}
OUTPUTS = {"raw.txt": "one\none\n", **MASKED, **FILLED, "table.txt": "".join(FILLED.values())}
"""What every file must hold in the end."""


class Place:
    """One checkout with the small experiment."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        own = {"PYTHONPATH": os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))},
            **own,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DVC_NO_ANALYTICS": "1",
            "DO_NOT_TRACK": "1",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            MARK: str(folder),
            **environment,
        }

    def start(self, *arguments: str, module: str = "tasks.cli", **environment: str) -> subprocess.Popen[bytes]:
        """Start one of our commands, or another program; what it prints goes to a file beside the folder."""
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=self.folder,
                env=self.environment | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands to its end."""
        return subprocess.run(
            [sys.executable, "-m", "tasks.cli", *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=600,
        )

    @property
    def log(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.log"

    def recorded(self) -> set[str]:
        """Stages that ``dvc.lock`` has."""
        path = self.folder / "dvc.lock"
        return set(yaml.safe_load(path.read_text(encoding="utf-8"))["stages"]) if path.exists() else set()

    def processes(self) -> list[psutil.Process]:
        """Everything that runs for this place."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.folder):
                    found.append(process)
        return found

    def finish(self, target: str) -> dict[str, str]:
        """Run it again to the end, with no fault, and check everything; the state of each stage in that run."""
        before = self.recorded()
        done = self.run("run", target, "--json")
        assert done.returncode == 0, done.stdout + done.stderr + self.log.read_text(encoding="utf-8")
        states = {stage["name"]: stage["state"] for stage in json.loads(done.stdout)["stages"]}
        redone = {name for name in before if states.get(name) == "ran"}
        assert not redone, f"finished stages were computed again: {redone}"
        self.check(target)
        return states

    def check(self, target: str) -> None:
        """Every file is right, DVC finds nothing to do, and nothing is left behind."""
        assert {path: (self.folder / path).read_text(encoding="utf-8") for path in OUTPUTS} == OUTPUTS
        plan = json.loads(self.run("plan", target, "--json").stdout)
        assert {stage["action"] for stage in plan["stages"]} == {"unchanged"}
        locks = self.folder / ".dvc" / "tmp" / "rwlock"
        assert not locks.exists() or not any(json.loads(locks.read_text(encoding="utf-8")).values())
        wait_until(lambda: not self.processes(), 20, lambda: f"left running: {self.processes()}")


def make_template(folder: Path) -> Path:
    """The experiment in which nothing has run."""
    folder.mkdir(parents=True)
    document = yaml.safe_load((CHECKOUT / "params.yaml").read_text(encoding="utf-8"))
    document["resources"] |= {"parallel_stages": 2, "retry_seconds": 0.2}
    (folder / "params.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    shutil.copy(CHECKOUT / "cells.yaml", folder)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".dvc").mkdir()
    (folder / ".dvc" / "config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    (folder / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n")
    (folder / ".gitignore").write_text("/*.txt\n/masked\n/filled\n/.palimpsest\n")
    (folder / "dvc.yaml").write_text(GRAPH)
    (folder / "in.txt").write_text("one\n")
    return folder


def kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGKILL)


def wait_until(done: Callable[[], Any], seconds: float = 240.0, said: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, said()
        time.sleep(0.05)


def stages_of(run: subprocess.Popen[bytes]) -> Iterator[psutil.Process]:
    """Processes of the stages that a run has under way: DVC's, and those of their commands."""
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(run.pid).children(recursive=True):
            with suppress(psutil.Error):
                command = " ".join(process.cmdline())
                forked = "warm_server" in command and process.ppid() != run.pid
                if forked or "DVC_STAGE" in process.environ():
                    yield process


MakePlace = Callable[..., Place]
"""Copies an experiment into a folder of the test."""


def moment(fault: str, number: int, length: float) -> float:
    """Seconds after the start, the same share of the run's length in every session."""
    return random.Random(f"{fault} {number}").uniform(0.0, length)


def length_of(start: Callable[[], "subprocess.Popen[bytes]"]) -> float:
    """Seconds that an undisturbed run takes."""
    started = time.monotonic()
    process = start()
    assert process.wait(900) == 0
    return time.monotonic() - started
