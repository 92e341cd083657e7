"""Files are the old one or the complete new one, and private from their first byte."""

import errno
import fcntl
import os
import shutil
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
        if str(source).endswith(".partial"):
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


def test_a_lock_is_held_until_the_file_is_in_place(tmp_path, monkeypatch):
    replace = os.replace

    def meanwhile(source, target):
        monkeypatch.setattr("os.replace", replace)
        write(tmp_path)
        replace(source, target)

    monkeypatch.setattr("os.replace", meanwhile)
    with atomic_writer(tmp_path / "out.txt") as stream:
        stream.write("mine")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "mine"


def test_what_is_taken_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    flock, taken = fcntl.flock, []

    def take_first(handle, operation):
        if len(taken) < 4:
            taken.append(os.readlink(f"/proc/self/fd/{handle}"))
            shutil.rmtree(taken[-1]) if os.path.isdir(taken[-1]) else os.unlink(taken[-1])
            if len(taken) % 2:
                raise BlockingIOError(errno.EWOULDBLOCK, "taken")
        flock(handle, operation)

    monkeypatch.setattr("fcntl.flock", take_first)
    write(tmp_path)
    write(tmp_path)
    assert len(taken) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out.txt"]


def test_what_is_written_without_locks_is_left(tmp_path, monkeypatch):
    def no_locks(handle, operation):
        raise OSError(errno.ENOLCK, "no locks")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", no_locks)
        stream_of, folder_of = atomic_writer(tmp_path / "out.txt"), atomic_folder(tmp_path / "model")
        stream, fresh = stream_of.__enter__(), folder_of.__enter__()
        write(tmp_path)
        assert partials(tmp_path) == ["model", "out"]
    stream.write("mine")
    (fresh / "weights").write_text("mine", encoding="utf-8")
    folder_of.__exit__(None, None, None)
    stream_of.__exit__(None, None, None)
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "model" / "weights").read_text(encoding="utf-8") == "mine"
    assert partials(tmp_path) == []
