"""One stage's entry of ``dvc.lock``, replaced as text, against DVC's own writing."""

from pathlib import Path

from scratch_project import GRAPH, make_project

from flows.stages.executor import Executor, State
from flows.stages.lock_entry import HEAD, replaced
from flows.stages.processes import Processes

TEXT = f"{HEAD}  raw:\n    cmd: |-\n      a\n\n        mask@list:\n    outs:\n    - path: x\n  mask@list:\n    cmd: c\n"


def test_an_entry_is_replaced_in_its_place_and_a_new_one_comes_last() -> None:
    assert replaced(TEXT, "raw", "  raw:\n    cmd: d\n") == f"{HEAD}  raw:\n    cmd: d\n  mask@list:\n    cmd: c\n"
    start = TEXT.index("\n  mask@list:") + 1
    assert replaced(TEXT, "mask@list", "  mask@list:\n    cmd: d\n") == f"{TEXT[:start]}  mask@list:\n    cmd: d\n"
    assert replaced(TEXT, "fill", "  fill:\n    cmd: d\n") == f"{TEXT}  fill:\n    cmd: d\n"
    assert replaced(TEXT, "fill", "  other:\n    cmd: d\n") is None


def test_a_file_in_another_form_than_dvcs_is_left_to_dvc() -> None:
    for text in [
        "",
        TEXT[:-1],
        TEXT.replace("stages:", "stages: # mine"),
        TEXT.replace("  mask", "# a remark\n  mask"),
        TEXT.replace("  mask", "  # a remark\n  mask"),
        TEXT.replace("  mask@list:", "  'mask@list':"),
        TEXT.replace("  mask@list:\n    cmd: c\n", "  mask@list: {cmd: c}\n"),
        TEXT.replace("cmd: c", "cmd: &id001 c"),
        f"{TEXT}<<<<<<< HEAD\n",
        f"{TEXT}datasets: []\n",
    ]:
        assert replaced(text, "raw", "  raw:\n    cmd: d\n") is None


LONG = "echo a word and another one and still more words until the line is longer than eighty characters or more"
COMMANDS = ["cat in.txt", f"{LONG}; cat in.txt", "cat in.txt > raw.txt\n      # 'q: \"'\n      cat in.txt"]
OTHERS = "".join(
    f"  other{number}:\n    cmd: |\n      {command} > other{number}.txt\n"
    f"    deps: [in.txt]\n    outs: [other{number}.txt]\n"
    for number, command in enumerate(COMMANDS)
)
NAMES = ["raw", "mask@list", "fill@list-top_1", "other0", "other1", "other2"]


def test_the_file_is_the_one_that_dvc_writes(tmp_path: Path) -> None:
    """Byte for byte, first time and again after a change; also with a person's remark in it."""
    ours, peer = (make_project(tmp_path / name, GRAPH + OTHERS) for name in ("ours", "peer"))
    with Processes(ours.folder) as processes:
        executor = Executor(processes, ours.folder)
        for number, end in enumerate(("", "", "# a remark\n")):
            for project in (ours, peer):
                project.write("in.txt", f"{number}\n")
                if number:
                    project.write("dvc.lock", project.read("dvc.lock") + end)
            assert {executor.run(name).state for name in NAMES} == {State.RAN}
            peer.dvc("repro", *NAMES)
            assert ours.read("dvc.lock") == peer.read("dvc.lock")
    assert "Running stage" not in ours.dvc("repro", *NAMES)
