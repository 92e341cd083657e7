"""The secret of a clone: one for all its worktrees, another for each purpose, and never half of one."""

import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tasks.errors import ParameterError
from tasks.files.clone_key import clone_key, key_id, private_home


def test_a_clone_has_one_key_for_each_purpose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert key_id() is None
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(clone_key, ["noise"] * 8))
    assert len(made) == 1
    assert clone_key("hashes") not in made
    path = tmp_path / "data" / "private" / "keys" / "clone_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["clone_key"]
    assert len(key_id()) == 12
    assert key_id() not in path.read_bytes().hex()
    path.write_bytes(b"short")
    with pytest.raises(ParameterError, match="has 5 bytes instead of 32"):
        clone_key("noise")


def test_worktrees_share_the_key_of_their_clone_and_other_clones_do_not(tmp_path, monkeypatch):
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x.example", *arguments], check=True, cwd=main)

    main, other, worktree = tmp_path / "main", tmp_path / "other", tmp_path / "elsewhere" / "worktree"
    main.mkdir()
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "empty")
    git("worktree", "add", "--quiet", "--detach", str(worktree))
    git("clone", "--quiet", str(main), str(other))
    keys = []
    for folder in (main, worktree, other):
        monkeypatch.chdir(folder)
        keys.append(clone_key("noise"))
    assert keys[0] == keys[1] != keys[2]
    monkeypatch.chdir(worktree)
    assert private_home() == main.resolve() / "data" / "private"
