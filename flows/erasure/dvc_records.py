"""DVC's records of stages and of added data: in the checkout, in its cache of runs, and in every state of git.

Read as plain YAML: DVC's own reader takes a second for a state of the graph, and a history has hundreds.

The name of a corpus comes first below each folder of data. So cells of an earlier comparison are found too, which no
stage has any more.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tasks.results.origin.lock_entries import LOCK_FILE, read_mapping, stages_of


@dataclass(frozen=True, slots=True)
class Record:
    """Inputs and outputs of a stage, or of data added with ``dvc add``, which has no inputs."""

    inputs: tuple[str, ...]
    """Paths in the checkout."""
    outputs: Mapping[str, str | None]
    """MD5 by path; for a folder with ``.dir`` at its end."""


def lock_records(stages: Mapping[str, Any]) -> dict[str, Record]:
    """The records of the stages of a ``dvc.lock``."""
    return {name: _record(entry, "") for name, entry in stages.items()}


def run_records(cache: Path) -> Iterator[tuple[Path, Record]]:
    """The records of DVC's cache of runs, each with its file."""
    for file in sorted((cache / "runs").glob("*/*/*")):
        yield file, _record(read_mapping(file.read_text(encoding="utf-8")), "")


def data_records(root: Path) -> Iterator[tuple[Path, Record]]:
    """The records of ``.dvc`` files in the checkout, each with its file."""
    for file in sorted(root.glob("[!.]*/**/*.dvc")) + sorted(root.glob("*.dvc")):
        if file.is_file():
            folder = file.parent.relative_to(root).as_posix()
            yield file, _record(read_mapping(file.read_text(encoding="utf-8")), folder)


def git_records(root: Path) -> Iterator[Record]:
    """The records of all states in git: of every branch, tag, stash, experiment and reflog."""
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
            yield _record(read_mapping(text), Path(path).parent.as_posix())


def experiments(root: Path) -> Iterator[tuple[str, dict[str, Record]]]:
    """The git references of DVC's experiments, each with the records of its ``dvc.lock``."""
    for reference in _git(root, "for-each-ref", "--format=%(refname)", "refs/exps").split():
        yield reference, lock_records(stages_of(_git(root, "cat-file", "blob", f"{reference}:{LOCK_FILE}")))


def remove_reference(root: Path, reference: str) -> None:
    """Delete an experiment's git reference; git's next clean-up removes its commit."""
    _git(root, "update-ref", "--no-deref", "-d", reference)


def _record(entry: Mapping[str, Any], folder: str) -> Record:
    """``folder``: base of its relative paths, in the checkout."""
    above = "" if folder in ("", ".") else f"{folder}/"
    inputs = tuple(above + str(dependency["path"]) for dependency in entry.get("deps") or () if "path" in dependency)
    return Record(inputs, {above + str(output["path"]): output.get("md5") for output in entry.get("outs") or ()})


def _git(root: Path, *arguments: str) -> str:
    """Git's output; empty if the object is missing, or without git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def hashes_of(records: Iterable[Record], objects: Path) -> set[str]:
    """The hashes of all outputs of these records, and of the files in folders that the cache has."""
    found = {digest for record in records for digest in record.outputs.values() if digest}
    for digest in [digest for digest in found if digest.endswith(".dir")]:
        file = objects / digest[:2] / digest[2:]
        if file.is_file():
            found.update(entry["md5"] for entry in json.loads(file.read_text(encoding="utf-8")))
    return found


ROOTS = (
    *("data/private/*", "data/obfuscated", "models/adapted", "models/tuned_fillers"),
    *("results/reports/*", "results/scores"),
)
"""Folders whose next part is the name of a corpus."""
_OTHER_NAMES = "(?!(?:applied|lineage|releases)/)"
"""In place of ``*``, these have names of another kind."""


class CorpusPaths:
    """Paths of a checkout with data of a corpus: those named after it, and the outputs of stages that have read it."""

    def __init__(self, name: str) -> None:
        roots = [root.replace("*", f"{_OTHER_NAMES}[^/]+").split("/") for root in ROOTS]
        below = "|".join(map("/".join, roots))
        self._named = re.compile(rf"(?:{below})/\.?{re.escape(name)}(?:\.[^/]*)?(?:/|$)")
        above = ["/".join(root.split("/")[:number]) for root in ROOTS for number in range(1, root.count("/") + 2)]
        self._above = re.compile("|".join(above).replace("*", "[^/.]+"))
        self._paths: set[str] = set()

    def add(self, paths: Iterable[str]) -> None:
        """Add further paths."""
        self._paths.update(paths)

    def files(self, root: Path) -> Iterator[Path]:
        """What is there of it, with partial files that killed writers left."""
        for place in ROOTS:
            for path in sorted(root.glob(f"{place}/*")):
                if self._named.match(path.relative_to(root).as_posix()):
                    yield path
        for path in (root / path for path in sorted(self._paths) if not self.holds(str(PurePosixPath(path).parent))):
            if not self._named.match(path.relative_to(root).as_posix()):
                yield from ([path] if path.exists() or path.is_symlink() else [])
                yield from path.parent.glob(f".{path.name}.*")

    def holds(self, path: str) -> bool:
        """Whether a file or folder is in one of the paths."""
        in_others = any(str(one) in self._paths for one in (PurePosixPath(path), *PurePosixPath(path).parents))
        return in_others or self._named.match(path) is not None

    def touches(self, record: Record) -> bool:
        """Whether a stage has read or written data of the corpus; a folder above all corpora counts too."""
        return any(self._above.fullmatch(path) or self.holds(path) for path in (*record.inputs, *record.outputs))

    def add_what_is_made(self, records: Iterable[Record]) -> None:
        """Add the outputs of stages that have read its data: tables of all corpora, the page, and so on."""
        records, grown = list(records), True
        while grown:
            made = {path for record in records if self.touches(record) for path in record.outputs}
            grown = any(not self.holds(path) for path in made)
            self.add(made)
