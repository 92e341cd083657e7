"""Commands of stages that start in a fork: the same as in a process of their own, but for the time of imports."""

import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from scratch_project import CHECKOUT, Project, until

from flows.checkout.run_lock import is_alive
from flows.stages.asking import hang_up, status_from
from flows.stages.executor import State, run_stage
from flows.stages.processes import Processes, asking_shell
from flows.stages.warm_server import HEAVY, OF_COMMANDS, OF_DVC, file_state, forkable, is_ours, needs_pytorch
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
def filling(served: Project) -> Project:
    served.write("dvc.yaml", GRAPH)
    served.write("masked.txt", "The [MASK] has a [MASK].\n")
    served.write("counts.tsv", "zebra\t5\nquartz\t3\nriver\t2\n")
    return served


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A server that has imported what stages import."""
    with Processes(tmp_path_factory.mktemp("warm")) as server:
        yield server


def test_every_command_of_our_graph_starts_in_a_fork_and_none_that_needs_a_shell() -> None:
    for rest in (" && cat a.txt", " $HOME", " 'a b.txt'", "\npalimpsest fill"):
        assert not is_ours(f"palimpsest fill{rest}")
    assert set(HEAVY) <= set(OURS)
    commands = [node.command for node in Project(CHECKOUT).graph().values()]
    assert [command for command in commands if command and not is_ours(command)] == []
    assert sum(map(needs_pytorch, commands)) > 35
    ours = [name for name in OF_COMMANDS if name.startswith("tasks.")]
    assert [name for name in (*OF_DVC, *ours) if find_spec(name) is None] == []


@pytest.mark.parametrize("change", [lambda file: file.write_text("b = 22\n"), Path.touch, Path.unlink])
def test_a_command_starts_anew_where_a_file_of_ours_is_no_longer_the_imported_one(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    file = tmp_path / "ours.py"
    file.write_text("a = 1\n")
    os.utime(file, (1, 1))
    imported = {str(file): file_state(str(file))}
    assert forkable(["/bin/sh", "-c", FILL], imported) == FILL.split()[1:]
    change(file)
    assert forkable(["/bin/sh", "-c", FILL], imported) is None


def test_a_fork_does_what_a_process_does_and_says_how_it_ended(
    filling: Project, warm: Processes, dvc_server: Processes
) -> None:
    shell = asking_shell(filling.folder, warm.address)
    outcome, wrong, other = (run_stage(name, dvc_server, environment=shell) for name in ("fill", "wrong", "shell"))
    assert (outcome.state, outcome.error) == (State.RAN, None)
    assert wrong.state is State.FAILED
    assert "'nonsense'" in str(wrong.error)
    assert (other.state, other.may_pass) == (State.FAILED, True)
    log = filling.read(".palimpsest/logs/shell.log")
    assert f"<hello {os.environ.get('SHELL') or '/bin/sh'}>" in log
    assert "didn't change" in filling.dvc("repro", "fill")
    forked = filling.read("filled.txt")
    (filling.folder / "filled.txt").unlink()
    assert filling.command(*FILL.split()[1:]).returncode == 0
    assert filling.read("filled.txt") == forked
    assert "[MASK]" not in forked


@pytest.mark.parametrize("end", ["stop", "close"])
def test_a_command_in_a_fork_is_gone_within_seconds_of_a_stop(filling: Project, warm: Processes, end: str) -> None:
    """It waits for a text that never comes."""
    os.mkfifo(filling.folder / "pipe")
    filling.replace("dvc.yaml", "--input masked.txt", "--input pipe")

    def forks() -> list[psutil.Process]:
        there = psutil.Process(warm._server.pid).children()
        return [process for process in there if is_alive(process.pid)]

    shell = asking_shell(filling.folder, warm.address)
    with Processes(filling.folder) as processes:
        line = processes.start(["dvc", "repro", "--single-item", "fill"], filling.folder / end, shell)
        until(forks, 120)
        time.sleep(0.5)
        before = time.monotonic()
        if end == "stop":
            hang_up(line)
            assert status_from(line)
            assert time.monotonic() - before < 10
    assert time.monotonic() - before < 10
    assert not (filling.folder / "filled.txt").exists()
    until(lambda: not forks(), 10)
