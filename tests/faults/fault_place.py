"""A small experiment that is disturbed: its folder, its commands, and what must hold when it is finished."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import scratch_project
import yaml
from scratch_project import Project, until

MARK = "PALIMPSEST_FAULT_PLACE"
"""Environment variable by which every process of a place is known."""
GRAPH = re.sub(r"    params:\n.*\n", "", scratch_project.GRAPH.replace("cmd: ", "cmd: sleep 0.2; "))
TECHNIQUES, METHODS = ("list", "tagger"), ("top_1", "top_k")
MASKED = {f"masked/{technique}.txt": f"one\none\n{technique}\n" for technique in TECHNIQUES}
FILLED = {f"filled/{name}-{method}.txt": f"one\none\n{name}\n" for name in TECHNIQUES for method in METHODS}
OUTPUTS = {"raw.txt": "one\none\n", **MASKED, **FILLED, "table.txt": "".join(FILLED.values())}
"""What every file must hold in the end."""


class Place(Project):
    """One checkout with the small experiment."""

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start one of our commands."""
        return super().start(*arguments, **environment, **{MARK: str(self.folder)})

    def recorded(self) -> set[str]:
        """Stages that ``dvc.lock`` has."""
        return set(yaml.safe_load(self.read("dvc.lock"))["stages"]) if (self.folder / "dvc.lock").exists() else set()

    def processes(self) -> list[psutil.Process]:
        """Everything that runs for this place."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.folder):
                    found.append(process)
        return found

    def finish(self) -> None:
        """Run it to the end, with no fault: every file is right, no finished stage is computed again, DVC finds
        nothing to do, and nothing is left behind."""
        before = self.recorded()
        done = self.palimpsest("run", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        states = {stage["name"]: stage["state"] for stage in json.loads(done.stdout)["stages"]}
        redone = {name for name in before if states.get(name) == "ran"}
        assert not redone, f"finished stages were computed again: {redone}"
        assert {path: self.read(path) for path in OUTPUTS} == OUTPUTS
        plan = json.loads(self.palimpsest("plan", "--json").stdout)
        assert {stage["action"] for stage in plan["stages"]} == {"unchanged"}
        locks = self.folder / ".dvc" / "tmp" / "rwlock"
        assert not locks.exists() or not any(json.loads(locks.read_text(encoding="utf-8")).values())
        until(lambda: not self.processes(), 20)


def stages_of(run: "subprocess.Popen[str]") -> Iterator[psutil.Process]:
    """Processes of the stages that a run has under way: DVC's, and those of their commands."""
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(run.pid).children(recursive=True):
            with suppress(psutil.Error):
                command = " ".join(process.cmdline())
                forked = "warm_server" in command and process.ppid() != run.pid
                if forked or "DVC_STAGE" in process.environ():
                    yield process


def used_kibibytes(folder: Path) -> int:
    """What is used of the file system of a folder."""
    usage = psutil.disk_usage(str(folder))
    return (usage.total - usage.free) // 1024
