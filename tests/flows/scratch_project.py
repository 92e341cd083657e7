"""A small project with a graph of its own, for tests that need a real DVC repository."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import forked_commands

CHECKOUT = Path(__file__).parents[2]

GRAPH = """
stages:
  raw:
    cmd: cat in.txt in.txt > raw.txt
    deps: [in.txt]
    outs: [raw.txt]
  mask:
    matrix:
      technique: [list, tagger]
    cmd: mkdir -p masked; (cat raw.txt; echo ${item.technique}) > masked/${item.technique}.txt
    deps:
      - raw.txt
    params:
      - filling.top_1
    outs:
      - masked/${item.technique}.txt
  fill:
    matrix:
      technique: [list, tagger]
      method: [top_1, top_k]
    cmd: mkdir -p filled; cat masked/${item.technique}.txt > filled/${item.technique}-${item.method}.txt
    deps:
      - masked/${item.technique}.txt
    params:
      - filling.${item.method}
    outs:
      - filled/${item.technique}-${item.method}.txt
  table:
    cmd: cat filled/*.txt > table.txt
    deps: [filled]
    outs: [table.txt]
"""
"""raw -> mask (2) -> fill (4) -> table; `table` depends on the folder that holds the outputs of `fill`."""

FILLS = [f"fill@{technique}-{method}" for technique in ("list", "tagger") for method in ("top_1", "top_k")]
ALL = ["raw", "mask@list", "mask@tagger", *FILLS, "table"]


class Project:
    """The folder of the project, and DVC's command in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def read(self, path: str) -> str:
        return (self.folder / path).read_text(encoding="utf-8")

    def replace(self, path: str, before: str, after: str) -> None:
        text = self.read(path)
        assert before in text
        self.write(path, text.replace(before, after))

    def dvc(self, *arguments: str) -> str:
        """Output of one DVC command, which must succeed."""
        done = forked_commands.dvc(self.folder, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files(self) -> dict[str, bytes]:
        """Every file but DVC's temporary ones, with its content."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not path.is_relative_to(self.folder / ".dvc" / "tmp")
        }

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands, which starts no stage and asks no Prefect server, to its end."""
        return forked_commands.palimpsest(self.folder, *arguments)

    def palimpsest(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands to its end, in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "tasks.cli", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), **environment},
            capture_output=True,
            text=True,
            timeout=400,
        )

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start one of our commands."""
        return subprocess.Popen(
            [sys.executable, "-m", "tasks.cli", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, path: str, run: subprocess.Popen[str]) -> None:
        """Wait until a command that was started has written a file."""
        deadline = time.monotonic() + 300
        while not (self.folder / path).exists():
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)


def make_project(folder: Path, graph: str) -> Project:
    """A git and DVC repository with the graph, the real parameters and one input file."""
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    project = Project(folder)
    project.write(".dvc/config", "[core]\n    analytics = false\n    check_update = false\n")
    project.write(".dvc/.gitignore", "/config.local\n/tmp\n/cache\n")
    project.write(".gitignore", "/*.txt\n/masked\n/filled\n/results\n/.palimpsest\n")
    project.write("dvc.yaml", graph)
    project.write("in.txt", "one\n")
    for name in ("params.yaml", "cells.yaml"):
        shutil.copy(CHECKOUT / name, folder)
    return project
