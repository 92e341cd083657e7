"""Restore the state that a number comes from: code, parameters, dvc.lock, and files in DVC's cache.

RUN is a name that 'palimpsest where-from' takes: a cell, a key, an MLflow run id, a stage or a
report. The state goes into a new folder next to this checkout, a git worktree. This checkout does
not change. With --folder . the state goes into this checkout, which must have no uncommitted
changes.

Nothing is computed. The command lists the files that are in no cache, and prints how to make them
again.

examples:
  palimpsest restore chat/allow_list/minilm-top_k-1
  palimpsest restore 69eb9eaa5d664044a1ba2734fda8487f --folder ../then --pull
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from tasks.errors import CorpusError, ResourceError
from tasks.options import WRITE_FOLDER, Argument, Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.stage_report import kept_changes
from tasks.results.origin.lock_entries import LockEntries, agrees, kept_entries, kept_lock, lock_digest, read_lock
from tasks.results.origin.restored_state import (
    RestoredState,
    apply_changes,
    bring_back,
    check_commit,
    checked_out_here,
    git,
    new_worktree,
)
from tasks.results.origin.where_from_command import resolve, tracked_lock

SUMMARY = "restore the code, parameters and files that a number comes from"


class RestoreOptions(Options):
    """What is brought back, and where to."""

    run: Annotated[str, Argument(positional=True)]
    """cell, key, MLflow run id, stage, or name of a report"""
    folder: Annotated[str | None, WRITE_FOLDER] = None
    """new folder for the state, or this checkout without uncommitted changes (default: a new folder next to this
    checkout)"""
    pull: bool = False
    """fetch missing files from DVC's remote"""


def run(options: RestoreOptions) -> None:
    """Resolve the name, bring the state back, say what is there and what is not."""
    origin = resolve(options.run)
    commit = origin["commit"]
    if not commit:
        raise CorpusError(
            f"the code of {origin['name']!r} is not recorded: it was made outside a git checkout; its parameters and "
            f"inputs are listed by 'palimpsest where-from {shlex.quote(options.run)}'"
        )
    check_commit(commit)
    patch, lost = _changes(origin)
    # Read before anything is checked out: in place, the lock of this state would be gone.
    lock, entries = _entries(origin)
    root = Path(git("rev-parse", "--show-toplevel").strip())
    folder = Path(options.folder or root.with_name(f"{root.name}-{(origin['changes'] or commit)[:10]}"))
    is_here = folder.resolve() == root.resolve()
    with checked_out_here(commit) if is_here else new_worktree(commit, folder) as place:
        if patch is not None:
            apply_changes(patch, place)
        try:
            state = bring_back(place, entries, pull=options.pull, replace=not is_here)
        except ResourceError as error:
            if lost is None:
                raise
            # Its stages are in no commit.
            raise CorpusError(f"{origin['name']!r} cannot be brought back: {lost}") from error
    print("\n".join(_lines(origin, lost, lock, entries, state)))


def _changes(origin: Mapping[str, Any]) -> tuple[Path | None, str | None]:
    """The uncommitted changes that the number was made with, and why they cannot be brought back, if so."""
    if not origin["dirty"]:
        return None, None
    lost = "changes that were not committed when the number was made"
    if not origin["changes"]:
        return None, f"{lost} and are not recorded; 'palimpsest run' makes it of what is here now, and records that"
    patch = kept_changes(origin["changes"])
    return (patch, None) if patch.exists() else (None, f"{lost}: {str(patch)!r} is in the clone that made it")


def _entries(origin: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The part of ``dvc.lock`` that the number comes from, empty where it is not here, and what names it, where it is
    recorded."""
    if origin["chain"]:
        lock = LockEntries(read_lock())
        if agrees(lock, Path(origin["chain"][0]["report"])):
            entries = lock.chain(origin["stage"])
            return lock_digest(entries), entries
    settings = read_sections(DEFAULT_PATH, ["tracking"])["tracking"]
    digest = tracked_lock(origin.get("run_id"), origin.get("key"), settings)
    return digest, kept_entries(digest) if digest else {}


def _again(origin: Mapping[str, Any], state: RestoredState) -> str:
    """The worktree's own code goes first: the installed command is that of another checkout."""
    folder = shlex.quote(str(state.folder.resolve()))
    return f"cd {folder} && PYTHONPATH={folder} dvc repro --pull {shlex.quote(origin['stage'])}"


def _lines(
    origin: Mapping[str, Any], lost: str | None, lock: str | None, entries: Mapping[str, Any], state: RestoredState
) -> Iterator[str]:
    yield f"{origin['key'] or origin['name']}: commit {origin['commit'][:10]} in {state.folder.resolve()}"
    if lost:
        yield f"cannot be brought back: {lost}"
    elif origin["changes"]:
        yield f"with its uncommitted changes: {kept_changes(origin['changes'])}"
    if entries:
        yield f"dvc.lock {lock}: {len(entries)} stages"
    else:
        missing = (
            f"{str(kept_lock(lock))!r} is not here; the clone that published it has it" if lock else "not recorded"
        )
        yield f"cannot be brought back: which files the number was made from; its part of dvc.lock: {missing}"
    if state.changed_parameters:
        yield f"parameters set that the commit has otherwise: {', '.join(state.changed_parameters)}"
    yield f"{len(state.restored)} of {len(state.restored) + len(state.missing)} files and folders came out of the cache"
    yield from (f"not in the cache, its stage makes it anew: {path}" for path in state.missing)
    yield from (f"not there, and no stage makes it: {path}; put it there" for path in state.sources)
    yield f"make again: {_again(origin, state)}"


COMMAND = Command(RestoreOptions, run)
