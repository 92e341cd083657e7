"""Restore the state that a number comes from: code, parameters, dvc.lock, and files in DVC's cache.

RUN is a name that 'palimpsest where-from' takes: a cell, a key, an MLflow run id, a stage or a
report. The state goes into a new folder next to this checkout, a git worktree. This checkout does
not change.

Nothing is computed. The command lists the files that are in no cache, and prints how to make them
again.

examples:
  palimpsest restore chat/allow_list/minilm-top_k-1
  palimpsest restore 69eb9eaa5d664044a1ba2734fda8487f --folder ../then --pull
"""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from tasks.errors import CorpusError, ResourceError
from tasks.files.atomic_file import atomic_writer, make_folder
from tasks.files.private_folders import close_private_folders
from tasks.files.separate_paths import overlap
from tasks.options import WRITE_FOLDER, Argument, Command, Options
from tasks.records.stage_report import stored_changes
from tasks.results.origin.lock_entries import (
    LOCK_FILE,
    LockEntries,
    lock_digest,
    lock_text,
    read_lock,
    stored_entries,
    stored_lock,
)
from tasks.results.origin.where_from_command import resolve, tracked_run

SUMMARY = "restore the code, parameters and files that a number comes from"


class RestoreOptions(Options):
    """Options of the restore: the number, and the folder."""

    run: Annotated[str, Argument(positional=True)]
    """cell, key, MLflow run id, stage, or name of a report"""
    folder: Annotated[str | None, WRITE_FOLDER] = None
    """new folder for the state (default: next to this checkout)"""
    pull: bool = False
    """fetch missing files from DVC's remote"""


def run(options: RestoreOptions) -> None:
    """Check out the commit, its uncommitted changes and the files of its lock; print what is missing."""
    origin = resolve(options.run)
    commit = origin["commit"]
    if not commit:
        raise CorpusError(
            f"the code of {origin['name']!r} is not recorded: it was made outside a git checkout; its parameters and "
            f"inputs are listed by 'palimpsest where-from {shlex.quote(options.run)}'"
        )
    try:
        _git("cat-file", "-e", f"{commit}^{{commit}}")
    except CorpusError:
        raise CorpusError(
            f"this repository does not have the commit {commit!r} of the number; fetch it ('git fetch --all') or run "
            "this in the checkout where the number was made"
        ) from None
    patch, lost = _changes(origin)
    digest, entries = _entries(origin)
    root = Path(_git("rev-parse", "--show-toplevel").strip())
    folder = Path(options.folder or root.with_name(f"{root.name}-{(origin['changes'] or commit)[:10]}"))
    with _worktree(commit, folder) as cache:
        if patch is not None:
            _git("apply", "--whitespace=nowarn", str(patch.absolute()), folder=folder)
        close_private_folders(folder)
        with atomic_writer(folder / LOCK_FILE) as stream:
            stream.write(lock_text({**read_lock(folder), **entries}))
        try:
            sources = _check_out(folder, entries, cache, pull=options.pull)
        except ResourceError as error:
            if lost is None:
                raise
            # Its stages are in no commit.
            raise CorpusError(f"{origin['name']!r} cannot be brought back: {lost}") from error
    print("\n".join(_lines(origin, lost, digest, entries, folder, sources)))


def _changes(origin: Mapping[str, Any]) -> tuple[Path | None, str | None]:
    """The uncommitted changes of the number, and the reason if they cannot be restored."""
    if not origin["dirty"]:
        return None, None
    lost = "changes that were not committed when the number was made"
    if not origin["changes"]:
        return None, f"{lost} and are not recorded; 'palimpsest run' makes it from the present state, and records that"
    patch = stored_changes(origin["changes"])
    return (patch, None) if patch.exists() else (None, f"{lost}: {str(patch)!r} is in the clone that made it")


def _entries(origin: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The digest of the recorded part of ``dvc.lock``, if any, and its entries, empty if they are not here."""
    digest = origin["dvc_lock"]
    if digest is None and origin["key"]:
        run = tracked_run(key=origin["key"])
        digest = run.data.tags.get("dvc_lock") if run is not None else None
    if digest is None:
        return None, {}
    present = LockEntries(read_lock()).chain(str(origin["stage"]))
    return digest, present if lock_digest(present) == digest else stored_entries(digest)


@contextmanager
def _worktree(commit: str, folder: Path) -> Iterator[Path]:
    """Check out the commit in a new worktree, removed if the block fails; yield DVC's cache, which both share."""
    if folder.exists():
        raise CorpusError(f"{str(folder)!r} exists; name another folder with --folder")
    try:
        _git("worktree", "add", "--detach", str(folder), commit)
        local = Path(".dvc", "config.local")
        if local.exists() and (folder / ".dvc").is_dir():
            shutil.copy2(local, folder / ".dvc" / "config.local")
        cache = Path(_dvc("cache", "dir").strip().splitlines()[-1]).absolute()
        _dvc("config", "--local", "cache.dir", str(cache), folder=folder)
        yield cache
    except BaseException:
        with suppress(CorpusError):
            _git("worktree", "remove", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _check_out(folder: Path, entries: Mapping[str, Any], cache: Path, *, pull: bool) -> list[str]:
    """Check out the files that a lock names; return the inputs that no stage makes."""
    made = [out["path"] for entry in entries.values() for out in entry.get("outs", ())]
    needed = {dependency["path"]: dependency for entry in entries.values() for dependency in entry.get("deps", ())}
    sources = {path: read for path, read in needed.items() if not any(overlap(out, path) for out in made)}
    for path, read in sources.items():
        # A committed .dvc file may be of another version than the one that the stages read, or absent.
        cached = cache / "files" / "md5" / str(read.get("md5", ""))[:2] / str(read.get("md5", ""))[2:]
        if not (folder / path).exists() and cached.is_file():
            output = {name: read[name] for name in ("hash", "md5", "size", "nfiles") if name in read}
            make_folder((folder / path).parent)
            with atomic_writer(folder / f"{path}.dvc") as stream:
                json.dump({"outs": [{**output, "path": Path(path).name, "push": False}]}, stream)
    targets = [*entries, *(f"{path}.dvc" for path in sources if (folder / f"{path}.dvc").exists())]
    if targets and pull:
        with suppress(ResourceError):
            _dvc("fetch", *targets, folder=folder)
    if targets:
        _dvc("checkout", "--force", "--allow-missing", *targets, folder=folder)
    return list(sources)


def _is_there(folder: Path, out: Mapping[str, Any]) -> bool:
    """Whether an output exists; a file must also be the one that the lock names."""
    path = folder / out["path"]
    if not path.is_file():
        return path.is_dir()
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() == out.get("md5")


def _lines(
    origin: Mapping[str, Any],
    lost: str | None,
    digest: str | None,
    entries: Mapping[str, Any],
    folder: Path,
    sources: Sequence[str],
) -> Iterator[str]:
    yield f"{origin['key'] or origin['name']}: commit {origin['commit'][:10]} in {folder.resolve()}"
    if lost:
        yield f"cannot be brought back: {lost}"
    elif origin["changes"]:
        yield f"with its uncommitted changes: {stored_changes(origin['changes'])}"
    if entries:
        yield f"dvc.lock {digest}: {len(entries)} stages"
    else:
        missing = f"{str(stored_lock(digest))!r} is not here; the clone that published it has it" if digest else ""
        missing = missing or "not recorded"
        yield f"cannot be brought back: which files the number was made from; its part of dvc.lock: {missing}"
    made = [out for entry in entries.values() for out in entry.get("outs", ())]
    absent = [out["path"] for out in made if not _is_there(folder, out)]
    yield f"{len(made) - len(absent)} of {len(made)} files and folders came out of the cache"
    yield from (f"not in the cache, its stage makes it again: {path}" for path in absent)
    yield from (
        f"not there, and no stage makes it: {path}; put it there" for path in sources if not (folder / path).exists()
    )
    # The worktree's own code goes first: the installed command is that of another checkout.
    place = shlex.quote(str(folder.resolve()))
    yield f"make again: cd {place} && PYTHONPATH={place} dvc repro --pull {shlex.quote(origin['stage'])}"


def _git(*arguments: str, folder: Path = Path()) -> str:
    return _output(["git", *arguments], folder, CorpusError)


def _dvc(*arguments: str, folder: Path = Path()) -> str:
    return _output([sys.executable, "-m", "dvc", *arguments], folder, ResourceError)


def _output(command: Sequence[str], folder: Path, error: type[Exception]) -> str:
    """The output of a command; raise the error, with its last line, if it fails."""
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        name = " ".join(command[:2] if command[0] == "git" else command[2:4])
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise error(f"'{name}' failed in {str(folder)!r}: {last}")
    return done.stdout


COMMAND = Command(RestoreOptions, run)
