"""Commands of stages that start in a fork: the same as in a process of their own, but for the time of imports."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scratch_project import CHECKOUT, Project

from flows.graph.graph import open_repository, read_graph
from flows.stages.executor import Executor, State
from flows.stages.processes import Process, Processes
from flows.stages.warm_commands import COMMANDS, arguments_of, file_state, forkable, imported

FILL = "palimpsest fill --method unigram --seed 1 --word-counts counts.tsv --input masked.txt --output filled.txt"
GRAPH = f"""
stages:
  fill:
    cmd: {FILL}
    deps: [masked.txt, counts.tsv]
    outs: [filled.txt]
"""
INSIDE_DVC = """
import os, sys
sys.path.insert(0, sys.argv[1])
import supervisor
supervisor.preload()
warm = supervisor.sibling("warm_commands")
from dvc.stage import run
from dvc.stage.exceptions import StageCmdFailedError
run._run = lambda executable, cmd, **options: print("a shell:", cmd, flush=True)
warm.start_commands_in_forks()
options = {"cwd": os.getcwd(), "env": dict(os.environ, GREETING="hello")}
for command in sys.argv[2:]:
    try:
        run._run("/bin/sh", command, **options)
        print("done", flush=True)
    except StageCmdFailedError as error:
        print("failed:", str(error).rsplit(" ", 1)[-1], flush=True)
"""


@pytest.fixture
def filling(project: Project) -> Project:
    project.write("dvc.yaml", GRAPH)
    project.write("masked.txt", "The [MASK] has a [MASK].\n")
    project.write("counts.tsv", "zebra\t5\nquartz\t3\nriver\t2\n")
    return project


def inside_dvc(folder: Path, *commands: str) -> list[str]:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    stages = CHECKOUT / "flows" / "stages"
    done = subprocess.run(
        [sys.executable, "-c", INSIDE_DVC, str(stages), *commands],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).splitlines()


def test_commands_that_need_a_shell_or_are_not_ours_have_none() -> None:
    assert arguments_of("palimpsest fill --input a.txt") == ["fill", "--input", "a.txt"]
    for command in (
        "palimpsest fill --input a.txt && cat a.txt",
        "palimpsest fill --input $HOME/a.txt",
        "palimpsest fill --input 'a b.txt'",
        "palimpsest fill\npalimpsest fill",
        "palimpsest mask --input a.txt",
        "palimpsest",
        "cat a.txt",
    ):
        assert arguments_of(command) is None


def test_of_our_own_graph_all_that_need_pytorch_start_in_a_fork() -> None:
    with open_repository(CHECKOUT) as repository:
        commands = [node.command or "" for node in read_graph(repository).nodes.values()]
    heavy = [
        command for command in commands if command.split()[:1] == ["palimpsest"] and command.split()[1] in COMMANDS
    ]
    assert len(heavy) > 45
    assert [command for command in heavy if arguments_of(command) is None] == []


@pytest.mark.parametrize("change", [lambda file: file.write_text("b = 22\n"), Path.touch, Path.unlink])
def test_a_command_starts_anew_where_a_file_of_ours_is_no_longer_what_was_imported(tmp_path, monkeypatch, change):
    file = tmp_path / "ours.py"
    file.write_text("a = 1\n")
    os.utime(file, (1, 1))
    monkeypatch.setitem(imported, str(file), file_state(str(file)))
    assert forkable(FILL) == arguments_of(FILL)
    change(file)
    assert forkable(FILL) is None


def test_a_fork_does_what_a_process_does_and_says_how_it_ended(filling: Project) -> None:
    lines = inside_dvc(filling.folder, FILL, FILL.replace("unigram", "nonsense"), "cat masked.txt", "palimpsest mask")
    kept = [line for line in lines if line.startswith(("done", "failed", "a shell", "palimpsest: error"))]
    assert kept[:1] == ["done"]
    assert kept[1] in ("failed: 1", "failed: 2")
    assert kept[2:6] == ["a shell: cat masked.txt", "done", "a shell: palimpsest mask", "done"]
    assert any("'nonsense'" in line for line in lines)
    forked = filling.read("filled.txt")
    (filling.folder / "filled.txt").unlink()
    subprocess.run([Path(sys.executable).parent / "palimpsest", *FILL.split()[1:]], cwd=filling.folder, check=True)
    assert filling.read("filled.txt") == forked
    assert "[MASK]" not in forked


def test_a_stage_runs_in_a_fork_of_a_prepared_supervisor_and_is_gone_within_seconds_of_a_stop(filling: Project) -> None:
    with Processes(filling.folder) as processes:
        processes.prepare_commands()
        outcome = Executor(processes, filling.folder).run("fill")
        assert (outcome.state, outcome.error) == (State.RAN, None)
        assert "[MASK]" not in filling.read("filled.txt")
        assert "didn't change" in filling.dvc("repro", "fill")
        # Now it waits for a text that never comes: it is stopped, and the next one ends with its supervisor.
        os.mkfifo(filling.folder / "pipe")
        filling.replace("dvc.yaml", "--input masked.txt", "--input pipe")
        for end in ("stop", "close"):
            log = filling.folder / end
            process = processes.start_dvc(["repro", "--single-item", "fill"], log)
            wait_for_text(log, "> palimpsest fill", process)
            time.sleep(1)
            assert process.status is None
            before = time.monotonic()
            if end == "stop":
                processes.stop(process)
                assert process.wait(20) is not None
                assert time.monotonic() - before < 10
    assert time.monotonic() - before < 10
    assert not (filling.folder / "filled.txt").exists()


def wait_for_text(log: Path, text: str, process: Process) -> None:
    deadline = time.monotonic() + 120
    while not log.exists() or text not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, "did not happen in time"
        assert process.status is None, log.read_text(encoding="utf-8")
        time.sleep(0.05)
