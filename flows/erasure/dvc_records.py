"""What DVC remembers of stages and of added data: in the checkout, in its cache of runs, and in every state of git.

Read as the YAML that it is: DVC's own reader takes a second for a state of the graph, and a history has hundreds.
"""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tasks.results.origin.lock_entries import LOCK_FILE, stages_of

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Record:
    """What went into a stage and what came out of it, or data added with ``dvc add``, which has no inputs."""

    inputs: tuple[str, ...]
    """Paths in the checkout."""
    outputs: Mapping[str, str | None]
    """MD5 by path; of a folder with ``.dir`` at its end."""


def lock_records(stages: Mapping[str, Any]) -> dict[str, Record]:
    """The records of the stages of a ``dvc.lock``."""
    return {name: _record(entry, "") for name, entry in stages.items()}


def run_records(cache: Path) -> Iterator[tuple[Path, Record]]:
    """The records of DVC's cache of runs, each with its file."""
    for file in sorted((cache / "runs").glob("*/*/*")):
        yield file, _record(_load(file.read_text(encoding="utf-8")) or {}, "")


def data_records(root: Path) -> Iterator[tuple[Path, Record]]:
    """The records of ``.dvc`` files below the checkout, each with its file."""
    for file in sorted(root.glob("[!.]*/**/*.dvc")) + sorted(root.glob("*.dvc")):
        if file.is_file():
            folder = file.parent.relative_to(root).as_posix()
            yield file, _record(_load(file.read_text(encoding="utf-8")) or {}, folder)


def git_records(root: Path) -> Iterator[Record]:
    """The records of all states that git has: of every branch, tag, stash, experiment and reflog."""
    listed = _git(root, "rev-list", "--all", "--reflog", "--full-history", "--objects", "--", LOCK_FILE, "*.dvc")
    above = _git(root, "rev-parse", "--show-prefix").strip()
    for line in listed.splitlines():
        blob, _, path = line.partition(" ")
        if not path.endswith((LOCK_FILE, ".dvc")):
            continue
        path = path.removeprefix(above)
        text = _git(root, "cat-file", "blob", blob)
        if path == LOCK_FILE:
            yield from lock_records(stages_of(text)).values()
        elif path.endswith(".dvc"):
            yield _record(_load(text) or {}, Path(path).parent.as_posix())


def experiments(root: Path) -> Iterator[tuple[str, dict[str, Record]]]:
    """The git references of DVC's experiments, each with the records of its ``dvc.lock``."""
    for reference in _git(root, "for-each-ref", "--format=%(refname)", "refs/exps").split():
        yield reference, lock_records(stages_of(_git(root, "cat-file", "blob", f"{reference}:{LOCK_FILE}")))


def remove_reference(root: Path, reference: str) -> None:
    """Let git forget an experiment; its commit goes with git's next clean-up."""
    _git(root, "update-ref", "-d", reference)


def _record(entry: Any, folder: str) -> Record:
    """``folder``: what its paths are relative to, in the checkout."""
    above = "" if folder in ("", ".") else f"{folder}/"
    inputs = tuple(above + str(dependency["path"]) for dependency in entry.get("deps") or () if "path" in dependency)
    return Record(inputs, {above + str(output["path"]): output.get("md5") for output in entry.get("outs") or ()})


def _load(text: str) -> Any:
    try:
        document = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError:
        return None
    return document if isinstance(document, dict) else None


def _git(root: Path, *arguments: str) -> str:
    """What git says; nothing where it has no such thing, or there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
