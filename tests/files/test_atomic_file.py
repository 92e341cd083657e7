"""Files are the old one or the complete new one, and private from their first byte."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.files.atomic_file import atomic_folder, atomic_writer, make_folder


def mode(path):
    return path.stat().st_mode & 0o777


def write(folder, content):
    with atomic_writer(folder / "out.txt") as stream, atomic_folder(folder / "model") as fresh:
        stream.write(content)
        (fresh / "weights").write_text(content, encoding="utf-8")


def contents(folder):
    return {path.name: path.read_text() if path.is_file() else contents(path) for path in folder.iterdir()}


def written(content):
    return {"out.txt": content, "model": {"weights": content}}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "earlier")
    return tmp_path


def test_an_error_leaves_the_earlier_ones_and_no_rest(folder):
    def fail_in_the_middle(kind, name):
        with kind(folder / name) as opened:
            (opened / "weights").write_text("half of") if kind is atomic_folder else opened.write("half of")
            raise RuntimeError

    for kind, name in ((atomic_writer, "out.txt"), (atomic_folder, "model")):
        with pytest.raises(RuntimeError):
            fail_in_the_middle(kind, name)
    assert contents(folder) == written("earlier")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_leaves_the_earlier_file_and_names_the_target(folder, monkeypatch):
    path, partial = folder / "out.txt", folder / "partial"
    partial.symlink_to("/dev/full")
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), str(partial)))
    with pytest.raises(OSError, match="No space left") as error, atomic_writer(path) as stream:
        stream.write("new")
    assert error.value.filename == str(path)
    assert path.read_text(encoding="utf-8") == "earlier"


def test_modes(tmp_path):
    secret = tmp_path / "secret"
    with atomic_writer(secret / "text.txt", private=True) as stream, atomic_folder(secret / "model", private=True):
        stream.write("x")
        assert mode(next(secret.glob("*text*.partial"))) == 0o600
    assert [mode(path) for path in (secret, secret / "text.txt", secret / "model")] == [0o700, 0o600, 0o700]
    write(tmp_path, "public")
    assert [mode(tmp_path / name) for name in ("out.txt", "model")] == [0o644, 0o755]
    make_folder(tmp_path / "a" / "b", private=True)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    (tmp_path / "mine").mkdir(mode=0o755)
    assert mode(make_folder(tmp_path / "mine", private=True)) == 0o755


def test_a_device_is_written_to_and_of_a_link_the_file_is_replaced(folder):
    pipe, link = folder / "pipe", folder / "link.txt"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    link.symlink_to(folder / "out.txt")
    for path in (pipe, link):
        with atomic_writer(path, private=True) as stream:
            stream.write("new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert (folder / "out.txt").read_text(encoding="utf-8") == "new"


KILLED = """
import os, signal, sys
from tasks.files.atomic_file import atomic_folder, atomic_writer
with atomic_writer(sys.argv[1], private=True) as stream, atomic_folder(sys.argv[2], private=True) as folder:
    stream.write("half of a secret")
    stream.flush()
    (folder / "weights").write_text("half of a secret")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "out.txt"), str(tmp_path / "model")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for _ in range(2):
        assert subprocess.run(arguments, env=environment, timeout=60).returncode == -signal.SIGKILL
        assert sorted(path.name.split(".")[1] for path in tmp_path.iterdir()) == ["model", "out"]
    with atomic_writer(tmp_path / "out.txt.gz") as stream:
        stream.write("another target")
    assert len(list(tmp_path.iterdir())) == 3
    write(tmp_path, "new")
    assert contents(tmp_path) == {**written("new"), "out.txt.gz": "another target"}
