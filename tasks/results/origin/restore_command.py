"""Restore the state that a number comes from: code, parameters, dvc.lock, and files in DVC's cache.

RUN is a name that 'palimpsest where-from' takes: a cell, a key, an MLflow run id, a stage or a
report. The state goes into a new folder next to this checkout, a git worktree. This checkout does
not change.

Nothing is computed. The command lists the files that are in no cache, and prints how to make them
again.

examples:
  palimpsest restore chat/allow_list/minilm-top_k-1
  palimpsest restore 69eb9eaa5d664044a1ba2734fda8487f --folder ../then
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from tasks.errors import CorpusError
from tasks.files.atomic_file import atomic_writer, make_folder
from tasks.files.private_folders import close_private_folders
from tasks.files.separate_paths import overlap
from tasks.options import WRITE_FOLDER, Argument, Command, Options
from tasks.records.stage_report import stored_changes
from tasks.results.origin.lock_entries import (
    LOCK_FILE,
    Stages,
    chain_of,
    lock_digest,
    lock_text,
    read_lock,
    stages_of,
    stored_lock,
)
from tasks.results.origin.where_from_command import Origin, resolve
from tasks.results.report_index import REPORTS, ReportIndex

SUMMARY = "restore the code, parameters and files that a number comes from"
_DVC = (sys.executable, "-m", "dvc")


class RestoreOptions(Options):
    """Options of the restore: the number, and the folder."""

    run: Annotated[str, Argument(positional=True)]
    """cell, key, MLflow run id, stage, or name of a report"""
    folder: Annotated[str | None, WRITE_FOLDER] = None
    """new folder for the state (default: next to this checkout)"""


def run(options: RestoreOptions) -> None:
    """Add a worktree of the commit, apply its changes, check out the files of its lock, and print what is missing."""
    origin = resolve(options.run, ReportIndex(REPORTS))
    commit, changes = origin.code["commit"], str(origin.code.get("changes") or "")
    if not commit:
        raise CorpusError(f"the code of {origin.name!r} is not recorded: it was made outside a git checkout")
    root = Path(_output("git", "rev-parse", "--show-toplevel"))
    folder = Path(options.folder or root.with_name(f"{root.name}-{(changes or commit)[:10]}"))
    if folder.exists():
        raise CorpusError(f"{str(folder)!r} exists; name another folder with --folder")
    patch, stages = stored_changes(changes).absolute(), _stages(origin)
    print(f"{origin.name}: commit {commit[:10]} in {folder.resolve()}")
    has_patch = bool(changes) and patch.exists()
    if origin.code["dirty"]:
        start = "with its uncommitted changes" if has_patch else "its uncommitted changes are not in this clone"
        print(f"{start}: {stored_changes(changes)}" if changes else "its uncommitted changes are not recorded")
    print(f"dvc.lock {origin.dvc_lock}: {f'{len(stages)} stages' if stages else 'not in this clone'}")
    try:
        _output("git", "worktree", "add", "--detach", str(folder), commit)
        if origin.code["dirty"] and has_patch:
            _output("git", "apply", "--whitespace=nowarn", str(patch), folder=folder)
        sources = _check_out(folder, stages)
    except BaseException:
        subprocess.run(["git", "worktree", "remove", "--force", str(folder)], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    made = _outputs(stages)
    absent = [path for path in made if not (folder / path).exists()]
    print(f"{len(made) - len(absent)} of {len(made)} files and folders came out of the cache")
    for path in absent:
        print(f"not in the cache, its stage makes it again: {path}")
    for path in sources:
        if not (folder / path).exists():
            print(f"not there, and no stage makes it: {path}")
    # The worktree's own code goes first: the installed command is that of another checkout.
    place = shlex.quote(str(folder.resolve()))
    print(f"make again: cd {place} && PYTHONPATH={place} dvc repro --pull {shlex.quote(str(origin.stage))}")


def _stages(origin: Origin) -> Stages:
    """The entries of ``dvc.lock`` that led to a number: the present or the stored ones; empty if neither has them."""
    present, path = chain_of(str(origin.stage), read_lock()), stored_lock(str(origin.dvc_lock))
    if lock_digest(present) == origin.dvc_lock:
        return present
    return stages_of(path.read_text(encoding="utf-8")) if path.exists() else {}


def _outputs(stages: Stages) -> list[str]:
    return [out["path"] for entry in stages.values() for out in entry.get("outs", ())]


def _check_out(folder: Path, stages: Stages) -> list[str]:
    """Let DVC check out the files of the stages from this checkout's cache; return the inputs that no stage makes."""
    close_private_folders(folder)
    with atomic_writer(folder / LOCK_FILE) as stream:
        stream.write(lock_text({**read_lock(folder), **stages}))
    local = Path(".dvc", "config.local")
    if local.exists():
        shutil.copy2(local, folder / local)
    cache = Path(_output(*_DVC, "cache", "dir").splitlines()[-1]).absolute()
    _output(*_DVC, "config", "--local", "cache.dir", str(cache), folder=folder)
    made, targets = _outputs(stages), list(stages)
    read = {dependency["path"]: dependency for entry in stages.values() for dependency in entry.get("deps", ())}
    sources = [path for path in read if not any(overlap(out, path) for out in made)]
    for path in sources:
        # A committed .dvc file may be of another version than the one that the stages read, or absent.
        if "md5" in read[path] and not (folder / path).exists():
            make_folder((folder / path).parent)
            with atomic_writer(folder / f"{path}.dvc") as stream:
                json.dump({"outs": [{**read[path], "path": Path(path).name, "push": False}]}, stream)
            targets.append(f"{path}.dvc")
    if targets:
        _output(*_DVC, "checkout", "--force", "--allow-missing", *targets, folder=folder)
    return sources


def _output(*command: str, folder: Path = Path()) -> str:
    """The output of a command; ``CorpusError`` with its last line if it fails."""
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        name = " ".join(command[2:4] if command[0] == sys.executable else command[:2])
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise CorpusError(f"'{name}' failed in {str(folder)!r}: {last}")
    return done.stdout.strip()


COMMAND = Command(RestoreOptions, run)
