"""Files are the old one or the complete new one, and private from their first byte."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.files.atomic_file import atomic_folder, atomic_writer, make_folder


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_an_error_leaves_the_earlier_file_and_no_rest(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("earlier", encoding="utf-8")

    def fail_in_the_middle():
        with atomic_writer(path) as stream:
            stream.write("half of")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_in_the_middle()
    assert path.read_text(encoding="utf-8") == "earlier"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_leaves_the_earlier_file_and_names_the_target(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("earlier", encoding="utf-8")
    (tmp_path / "partial").symlink_to("/dev/full")
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), str(tmp_path / "partial")))
    with pytest.raises(OSError, match="No space left") as error, atomic_writer(path) as stream:
        stream.write("new")
    assert error.value.filename == str(path)
    assert path.read_text(encoding="utf-8") == "earlier"


def test_modes(tmp_path):
    with atomic_writer(tmp_path / "secret" / "text.txt", private=True) as stream:
        stream.write("x")
        partial = next((tmp_path / "secret").glob("*.partial"))
        assert mode(partial) == 0o600
    assert mode(tmp_path / "secret" / "text.txt") == 0o600
    assert mode(tmp_path / "secret") == 0o700
    with atomic_writer(tmp_path / "public.txt") as stream:
        stream.write("x")
    assert mode(tmp_path / "public.txt") == 0o644
    make_folder(tmp_path / "a" / "b", private=True)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    (tmp_path / "mine").mkdir(mode=0o755)
    assert mode(make_folder(tmp_path / "mine", private=True)) == 0o755


def test_a_device_is_written_to_and_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_writer(pipe, private=True) as stream:
        stream.write("x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_behind_a_link_the_file_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "real.txt").write_text("earlier", encoding="utf-8")
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "real.txt")
    with atomic_writer(link) as stream:
        stream.write("new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text(encoding="utf-8") == "new"


def test_a_folder_is_replaced_whole(tmp_path):
    for content in ("earlier", "new"):
        with atomic_folder(tmp_path / "model", private=True) as fresh:
            (fresh / "weights").write_text(content, encoding="utf-8")
    assert (tmp_path / "model" / "weights").read_text(encoding="utf-8") == "new"
    assert mode(tmp_path / "model") == 0o700
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


def test_a_folder_that_cannot_be_put_in_place_leaves_the_earlier_one(tmp_path, monkeypatch):
    with atomic_folder(tmp_path / "model") as fresh:
        (fresh / "weights").write_text("earlier", encoding="utf-8")
    rename = os.rename

    def fail_for_the_new_one(source, target):
        if str(target) == str(tmp_path / "model") and not str(source).endswith(".earlier.partial"):
            raise OSError(errno.ENOSPC, "refused")
        rename(source, target)

    monkeypatch.setattr("os.rename", fail_for_the_new_one)

    def replace():
        with atomic_folder(tmp_path / "model") as fresh:
            (fresh / "weights").write_text("new", encoding="utf-8")

    with pytest.raises(OSError, match="refused") as caught:
        replace()
    assert caught.value.filename == str(tmp_path / "model")
    assert (tmp_path / "model" / "weights").read_text(encoding="utf-8") == "earlier"
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


KILLED = """
import os, signal, sys
from tasks.files.atomic_file import atomic_folder, atomic_writer
with atomic_writer(sys.argv[1], private=True) as stream, atomic_folder(sys.argv[2], private=True) as folder:
    stream.write("half of a secret")
    stream.flush()
    (folder / "weights").write_text("half of a secret")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_writer(folder):
    arguments = [sys.executable, "-c", KILLED, str(folder / "out.txt"), str(folder / "model")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run(arguments, env=environment, timeout=60).returncode == -signal.SIGKILL


def partials(folder):
    return sorted(path.name.split(".")[1] for path in folder.glob(".*.partial"))


def write(folder):
    with atomic_writer(folder / "out.txt") as stream, atomic_folder(folder / "model") as fresh:
        stream.write("new")
        (fresh / "weights").write_text("new", encoding="utf-8")


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    for _ in range(2):
        killed_writer(tmp_path)
    assert partials(tmp_path) == ["model", "out"]
    with atomic_writer(tmp_path / "out.txt.gz") as stream:
        stream.write("another target")
    assert partials(tmp_path) == ["model", "out"]
    write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out.txt", "out.txt.gz"]


def test_writers_of_the_same_target_leave_one_another_alone(tmp_path):
    with atomic_writer(tmp_path / "out.txt") as stream, atomic_folder(tmp_path / "model") as fresh:
        stream.write("mine")
        (fresh / "weights").write_text("mine", encoding="utf-8")
        write(tmp_path)
        assert partials(tmp_path) == ["model", "out"]
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "model" / "weights").read_text(encoding="utf-8") == "mine"
    assert partials(tmp_path) == []
