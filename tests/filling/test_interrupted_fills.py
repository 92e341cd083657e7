import json
import random
import time

import pytest
from interrupted_fills import SHARDS, computed, finish, finished, kill_at, numbers, start, write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fills")
    write_corpus(folder)
    finish(start(folder, "whole"))
    assert sorted(computed(folder, "whole")) == list(range(SHARDS))
    return folder


def test_a_killed_fill_goes_on_where_it_ended(folder):
    dice = random.Random(20)
    for shards in (0, 1, 5, 14, SHARDS - 1):
        before = finished(folder)
        process = start(folder, "killed", pause=0.005)
        kill_at(process, folder, shards, delay=dice.random() * 0.02)
        assert not before & set(computed(folder, "killed"))
        assert before <= finished(folder)
        assert not (folder / "killed.txt").exists()
    before = finished(folder)
    assert len(before) >= SHARDS - 1
    error = finish(start(folder, "killed"))
    assert set(computed(folder, "killed")) == set(range(SHARDS)) - before
    assert f"{len(before)} of {SHARDS} shards were finished before" in error
    assert (folder / "killed.txt").read_bytes() == (folder / "whole.txt").read_bytes()
    assert numbers(folder, "killed") == numbers(folder, "whole")
    assert numbers(folder, "killed")["restoration"]["overall"]["restored"] > 0
    assert json.loads((folder / "killed.json").read_text())["measured"]["resumed_shards"] == len(before)
    assert not any((folder / ".palimpsest" / "shards").iterdir())


def test_what_is_kept_is_private_and_held_by_one_process(folder):
    process = start(folder, "held", pause=0.05)
    deadline = time.monotonic() + 30
    while not finished(folder) and time.monotonic() < deadline:
        time.sleep(0.005)
    (kept,) = (folder / ".palimpsest" / "shards").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in kept.iterdir() if not file.name.endswith(".partial")} == {0o600}
    error = finish(start(folder, "held"), status=1)
    assert "another process is making 'held.txt'" in error
    assert error.count("\n") == 1
    kill_at(process, folder, 0, delay=0)
    finish(start(folder, "held"))
    assert (folder / "held.txt").read_bytes() == (folder / "whole.txt").read_bytes()


def test_several_processes_write_what_one_writes(folder):
    finish(start(folder, "shared", "--set", "resources.devices=2"))
    assert (folder / "shared.txt").read_bytes() == (folder / "whole.txt").read_bytes()
    assert numbers(folder, "shared") == numbers(folder, "whole")


def test_workers_end_with_a_process_that_is_killed_and_another_goes_on(folder):
    process = start(folder, "orphans", "--set", "resources.devices=2", pause=0.05)
    deadline = time.monotonic() + 30
    while not finished(folder) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    children = _children(process.pid)
    kill_at(process, folder, 0, delay=0)
    before = finished(folder)
    deadline = time.monotonic() + 5
    while any(map(_lives, children)):
        assert time.monotonic() < deadline, "a worker outlived the process that started it"
        time.sleep(0.01)
    finish(start(folder, "orphans", pause=0))
    assert not before & set(computed(folder, "orphans"))
    assert (folder / "orphans.txt").read_bytes() == (folder / "whole.txt").read_bytes()


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
        return list(map(int, stream.read().split()))


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
