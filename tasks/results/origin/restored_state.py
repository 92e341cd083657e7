"""The state that a number comes from, brought back into a folder: code, parameters, ``dvc.lock``, and cached files.

Code comes from git, in a worktree of its own. Parameters and the hashes of all files come from the part of
``dvc.lock`` that was recorded with the number. Files come out of DVC's cache.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError, ResourceError
from tasks.files.atomic_file import atomic_writer
from tasks.files.paths_apart import overlap
from tasks.files.private_folders import close_private_folders
from tasks.results.origin.lock_entries import LOCK_FILE, read_lock


@dataclass
class RestoredState:
    """What was brought back, and what was not."""

    folder: Path
    changed_parameters: list[str] = field(default_factory=list)
    """Key paths of parameters in which the number's state differs from its commit."""
    restored: list[str] = field(default_factory=list)
    """Outputs of stages that are there."""
    missing: list[str] = field(default_factory=list)
    """Outputs that the cache does not have."""
    sources: list[str] = field(default_factory=list)
    """Inputs that no stage makes and that are not there."""


def git(*arguments: str, folder: Path | str = ".") -> str:
    """What a git command prints; ``CorpusError`` with its first line where it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=600)
    except FileNotFoundError:
        raise ResourceError("git is not installed; install it, since it holds the code of every number") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise CorpusError(f"'git {' '.join(arguments)}' failed: {lines[-1]}")
    return done.stdout


def check_commit(commit: str) -> None:
    """``CorpusError`` where the repository does not have a commit."""
    try:
        git("cat-file", "-e", f"{commit}^{{commit}}")
    except CorpusError:
        raise CorpusError(
            f"this repository does not have the commit {commit!r} of the number; fetch it ('git fetch --all') or run "
            "this in the checkout where the number was made"
        ) from None


@contextmanager
def new_worktree(commit: str, folder: Path) -> Iterator[Path]:
    """The commit in a new folder, which shares the repository and DVC's cache with this one; gone again where the block
    fails."""
    if folder.exists():
        raise CorpusError(f"{str(folder)!r} exists; name another folder with --folder")
    try:
        git("worktree", "add", "--detach", str(folder), commit)
        _use_this_cache(folder)
        yield folder
    except BaseException:
        with suppress(CorpusError):
            git("worktree", "remove", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _use_this_cache(folder: Path) -> None:
    local = Path(".dvc", "config.local")
    if local.exists() and (folder / ".dvc").is_dir():
        shutil.copy2(local, folder / ".dvc" / "config.local")
    _dvc(["config", "--local", "cache.dir", dvc_cache()], folder)


@contextmanager
def checked_out_here(commit: str) -> Iterator[Path]:
    """The commit in this checkout, which is put back where the block fails; ``CorpusError`` where tracked files have
    changes that would be lost."""
    changes = git("status", "--porcelain", "--untracked-files=no").splitlines()
    if changes:
        raise CorpusError(
            f"this checkout has {len(changes)} changed files that are not committed, {changes[0][3:]!r} among them; "
            "commit them, or leave out --folder and get one of its own"
        )
    before = git("rev-parse", "--abbrev-ref", "HEAD").strip()
    before = git("rev-parse", "HEAD").strip() if before == "HEAD" else before
    git("checkout", "--detach", commit)
    try:
        yield Path()
    except BaseException:
        git("checkout", "--force", before)
        raise


def apply_changes(patch: Path, folder: Path) -> None:
    """Bring back uncommitted changes that were kept with a number."""
    git("apply", "--whitespace=nowarn", str(patch.absolute()), folder=folder)


def dvc_cache() -> str:
    """Absolute path of DVC's cache of this checkout."""
    return str(Path(_dvc(["cache", "dir"], Path()).strip().splitlines()[-1]).absolute())


def bring_back(folder: Path, entries: Mapping[str, Any], *, pull: bool, replace: bool) -> RestoredState:
    """Write the parameters and the lock of ``entries`` into a checkout, and check out the files that they name.

    Without ``replace`` DVC refuses to overwrite a file of which its cache has no copy (``ResourceError``).
    """
    close_private_folders(folder)
    state = RestoredState(folder)
    for name, values in _parameters(entries).items():
        state.changed_parameters += _write_parameters(folder / name, values)
    _write_lock(folder, entries)
    made = [out["path"] for entry in entries.values() for out in entry.get("outs", ())]
    needed = [dependency["path"] for entry in entries.values() for dependency in entry.get("deps", ())]
    sources = [path for path in dict.fromkeys(needed) if not any(overlap(out, path) for out in made)]
    targets = [*entries, *_added_sources(folder, sources, entries)]
    if targets:
        if pull:
            _dvc(["fetch", *targets], folder, may_fail=True)
        _dvc(["checkout", *(["--force"] if replace else []), "--allow-missing", *targets], folder)
    outs = [out for entry in entries.values() for out in entry.get("outs", ())]
    state.restored = [out["path"] for out in outs if _is_there(folder, out)]
    state.missing = [out["path"] for out in outs if not _is_there(folder, out)]
    state.sources = [path for path in sources if not (folder / path).exists()]
    return state


def _added_sources(folder: Path, sources: Sequence[str], entries: Mapping[str, Any]) -> Iterator[str]:
    """The ``.dvc`` files of sources that are not there; written for the version that the stages read, where DVC's cache
    has it, since such a file may have been of another version, or in no commit."""
    recorded = {entry["path"]: entry for stage in entries.values() for entry in stage.get("deps", ())}
    cache = Path(dvc_cache())
    for path in sources:
        file = folder / f"{path}.dvc"
        digest = str(recorded[path].get("md5", ""))
        if not (folder / path).exists() and (cache / "files" / "md5" / digest[:2] / digest[2:]).is_file():
            output = {key: recorded[path][key] for key in ("hash", "md5", "size", "nfiles") if key in recorded[path]}
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(file) as stream:
                json.dump({"outs": [{**output, "path": file.stem, "push": False}]}, stream)
        if file.exists():
            yield f"{path}.dvc"


def _is_there(folder: Path, out: Mapping[str, Any]) -> bool:
    """Whether an output is there; of a file, whether it is the one that the lock names."""
    path = folder / out["path"]
    if not path.is_file():
        return path.is_dir()
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    return digest == out.get("md5", digest)


def _parameters(entries: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Values by key path, for each file of parameters."""
    files: dict[str, dict[str, Any]] = {}
    for entry in entries.values():
        for name, values in (entry.get("params") or {}).items():
            files.setdefault(name, {}).update(values)
    return files


def _write_parameters(path: Path, values: Mapping[str, Any]) -> list[str]:
    """Set what differs in a YAML file, whose comments stay; returns the key paths."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 120
    document = yaml.load(path.read_text(encoding="utf-8")) if path.exists() else {}
    changed = []
    for key, value in values.items():
        *parents, last = key.split(".")
        section = document
        for parent in parents:
            section = section.setdefault(parent, {})
        if section.get(last) != value:
            section[last] = value
            changed.append(key)
    if changed:
        with atomic_writer(path) as stream:
            yaml.dump(document, stream)
    return changed


def _write_lock(folder: Path, entries: Mapping[str, Any]) -> None:
    import yaml

    with atomic_writer(folder / LOCK_FILE) as stream:
        yaml.safe_dump({"schema": "2.0", "stages": {**read_lock(folder), **entries}}, stream, sort_keys=False)


def _dvc(arguments: Sequence[str], folder: Path, *, may_fail: bool = False) -> str:
    """What a DVC command prints; ``ResourceError`` with its last line where it fails."""
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode != 0 and not may_fail:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ResourceError(f"'dvc {arguments[0]}' failed in {str(folder)!r}: {lines[-1]}")
    return done.stdout
