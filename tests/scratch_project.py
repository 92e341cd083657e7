"""A small project with a graph of its own, for tests that need a real DVC repository."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import forked_commands

from flows.graph.graph import Graph, Node, open_repository, read_graph
from flows.graph.plan import planned
from flows.graph.selection import select

CHECKOUT = Path(__file__).parents[1]

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
        process = self.start(*arguments, **environment)
        output, errors = process.communicate(timeout=400)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

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

    def git(self, *arguments: str) -> str:
        """Output of one git command, which must succeed."""
        command = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout

    def graph(self) -> Graph:
        with open_repository(self.folder) as repository:
            return read_graph(repository)

    def plan(self, *patterns: str) -> Graph:
        with open_repository(self.folder) as repository:
            return planned(select(read_graph(repository), patterns))

    def wait_for(self, path: str, run: subprocess.Popen[str]) -> None:
        """Wait until a command that was started has written a file."""

        def is_there() -> bool:
            assert run.poll() is None, run.communicate()
            return (self.folder / path).exists()

        until(is_there, 300)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until it holds; at most these seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)


def make_project(folder: Path, graph: str) -> Project:
    """A git and DVC repository with the graph, the real parameters and one input file."""
    folder.mkdir(parents=True, exist_ok=True)
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


def node(name: str, *upstream: str) -> Node:
    """A stage of a graph without a repository."""
    return Node(name, "true", (), (), (), upstream)
