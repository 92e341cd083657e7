"""Commands of stages that start in a fork: the same as in a process of their own, but for the time of imports."""

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scratch_project import CHECKOUT, Project

from flows.graph.graph import open_repository, read_graph
from flows.stages.executor import Executor, State
from flows.stages.processes import Process, Processes, asking_shell
from flows.stages.warm_server import COMMANDS, FORKED, OF_COMMANDS, OF_DVC, file_state, forkable, needs_pytorch
from tasks.cli import COMMANDS as OURS

FILL = "palimpsest fill --method unigram --seed 1 --word-counts counts.tsv --input masked.txt --output filled.txt"
GRAPH = f"""
stages:
  fill:
    cmd: {FILL}
    deps: [masked.txt, counts.tsv]
    outs: [filled.txt]
  wrong:
    cmd: {FILL.replace("unigram", "nonsense")}
  shell:
    cmd: GREETING=hello && echo "<$GREETING $SHELL>"; kill -9 $$
"""


@pytest.fixture
def filling(project: Project) -> Project:
    project.write("dvc.yaml", GRAPH)
    project.write("masked.txt", "The [MASK] has a [MASK].\n")
    project.write("counts.tsv", "zebra\t5\nquartz\t3\nriver\t2\n")
    return project


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A server that has imported what stages import."""
    with Processes(tmp_path_factory.mktemp("warm"), COMMANDS) as server:
        yield server


def test_commands_that_need_a_shell_or_no_pytorch_start_in_none() -> None:
    assert needs_pytorch("palimpsest fill  --input a.txt")
    for command in (
        "palimpsest fill --input a.txt && cat a.txt",
        "palimpsest fill --input $HOME/a.txt",
        "palimpsest fill --input 'a b.txt'",
        "palimpsest fill\npalimpsest fill",
        "palimpsest fillers",
        "palimpsest mask --input a.txt",
        "palimpsest",
        "cat a.txt",
    ):
        assert not needs_pytorch(command)


def test_every_name_in_the_lists_exists_and_our_graph_starts_such_commands_in_forks() -> None:
    assert set(FORKED) <= set(OURS)
    for name in [*OF_DVC, *OF_COMMANDS]:
        importlib.import_module(name)
    with open_repository(CHECKOUT) as repository:
        commands = [node.command for node in read_graph(repository).nodes.values()]
    heavy = [command for command in commands if command.split()[:1] == ["palimpsest"] and command.split()[1] in FORKED]
    assert len(heavy) > 45
    assert [command for command in heavy if not needs_pytorch(command)] == []


@pytest.mark.parametrize("change", [lambda file: file.write_text("b = 22\n"), Path.touch, Path.unlink])
def test_a_command_starts_anew_where_a_file_of_ours_is_no_longer_the_imported_one(tmp_path, change):
    file = tmp_path / "ours.py"
    file.write_text("a = 1\n")
    os.utime(file, (1, 1))
    imported = {str(file): file_state(str(file))}
    assert forkable(["/bin/sh", "-c", FILL], imported) == FILL.split()[1:]
    change(file)
    assert forkable(["/bin/sh", "-c", FILL], imported) is None


def test_a_fork_does_what_a_process_does_and_says_how_it_ended(filling: Project, warm: Processes) -> None:
    shell = asking_shell(filling.folder, warm.address, everything=False)
    with Processes(filling.folder) as processes:
        executor = Executor(processes, filling.folder, environment=shell)
        outcome, wrong, own = (executor.run(name) for name in ("fill", "wrong", "shell"))
        asking_shell(filling.folder, warm.address, everything=True)
        asked = executor.run("shell")
    assert (outcome.state, outcome.error) == (State.RAN, None)
    assert wrong.state is State.FAILED
    assert "'nonsense'" in str(wrong.error)
    assert [(one.state, one.may_pass) for one in (own, asked)] == [(State.FAILED, True)] * 2
    log = filling.read(".palimpsest/logs/shell.log")
    assert f"<hello {os.environ.get('SHELL') or '/bin/sh'}>" in log
    assert "didn't change" in filling.dvc("repro", "fill")
    forked = filling.read("filled.txt")
    (filling.folder / "filled.txt").unlink()
    subprocess.run([Path(sys.executable).parent / "palimpsest", *FILL.split()[1:]], cwd=filling.folder, check=True)
    assert filling.read("filled.txt") == forked
    assert "[MASK]" not in forked


@pytest.mark.parametrize("end", ["stop", "close"])
def test_a_command_in_a_fork_is_gone_within_seconds_of_a_stop(filling: Project, warm: Processes, end: str) -> None:
    """It waits for a text that never comes."""
    os.mkfifo(filling.folder / "pipe")
    filling.replace("dvc.yaml", "--input masked.txt", "--input pipe")
    log = filling.folder / end
    shell = asking_shell(filling.folder, warm.address, everything=False)
    with Processes(filling.folder) as processes:
        process = processes.start(["dvc", "repro", "--single-item", "fill"], log, shell)
        wait_for_text(log, "> palimpsest fill", process)
        time.sleep(2)
        assert process.wait(0) is None
        before = time.monotonic()
        if end == "stop":
            process.stop()
            assert process.wait(20) is not None
            assert time.monotonic() - before < 10
    assert time.monotonic() - before < 10
    assert not (filling.folder / "filled.txt").exists()
    forks = subprocess.run(["pgrep", "-P", str(warm._server.pid)], capture_output=True, text=True)
    assert forks.stdout == ""


def wait_for_text(log: Path, text: str, process: Process) -> None:
    deadline = time.monotonic() + 120
    while not log.exists() or text not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, "did not happen in time"
        assert process.wait(0) is None, log.read_text(encoding="utf-8")
        time.sleep(0.05)
