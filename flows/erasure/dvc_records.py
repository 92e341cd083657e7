"""DVC's records of stages and of added data: in the checkout, in its cache of runs, and in every state of git.

Read as plain YAML: DVC's own reader takes a second for a state of the graph, and a history has hundreds.

The graph shows where a corpus is in a checkout. Each output with the name of a corpus in its path is a place of that
corpus, down to that part of the path. So cells of an earlier comparison are found too, which no stage has any more.
"""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from tasks.parameters.cells_file import MODELS, MODELS_OF_RAW_TEXT
from tasks.records.cells import MASK_REPORTS
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


_FOLDER = ".dir"
"""Ending of the hash of a folder; its object lists the hashes of the files in it."""


class CachedObjects:
    """Objects of one cache, in the layouts of DVC 3 and DVC 2."""

    def __init__(self, cache: Path) -> None:
        self._places = (cache / "files" / "md5", cache)

    def of(self, records: Iterable[Record]) -> set[str]:
        """The hashes of all outputs of these records, and of the files in folders that the cache knows."""
        found = set[str]()
        for digest in {digest for record in records for digest in record.outputs.values() if digest}:
            found.add(digest)
            if digest.endswith(_FOLDER):
                found.update(self._inside(digest))
        return found

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every object with its file; a killed process's partial copies have names of their own."""
        for place in self._places:
            for folder in sorted(place.glob("??")):
                yield from ((folder.name + file.name, file) for file in sorted(folder.iterdir()))

    def _inside(self, digest: str) -> Iterator[str]:
        for place in self._places:
            file = place / digest[:2] / digest[2:]
            if file.is_file():
                yield from (entry["md5"] for entry in json.loads(file.read_text(encoding="utf-8")))


_NAMES = ("${item.dataset}", "${key}")
"""Placeholders of a corpus name in ``dvc.yaml``: of a cell, and in a ``foreach`` over corpora and labelled text with a
corpus' name."""
_PATH = "${item.path}"
"""Placeholder of the path of a cell, which begins with the name."""
_CHOSEN = {
    "${item.model}": [f"{folder}/{_PATH}" for folder in (MODELS, MODELS_OF_RAW_TEXT)],
    "${item.report}": list(MASK_REPORTS.values()),
}
"""Other values of placeholders, by cell."""


class CorpusPaths:
    """Paths of a checkout with data of a corpus."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: set[str] = set()
        self._above: set[str] = set()
        self.add(paths)

    def add(self, paths: Iterable[str]) -> None:
        """Add more paths."""
        for path in paths:
            self._paths.add(path)
            self._above.update(map(str, PurePosixPath(path).parents))

    def __iter__(self) -> Iterator[str]:
        """Each path that is in no other."""
        return iter(sorted(path for path in self._paths if not any(str(one) in self._paths for one in _above(path))))

    def holds(self, path: str) -> bool:
        """Whether a file or folder is in one of the paths."""
        return path in self._paths or any(str(one) in self._paths for one in _above(path))

    def touches(self, record: Record) -> bool:
        """Whether a stage has read or written data of the corpus; a folder above all corpora counts too."""
        return any(path in self._above or self.holds(path) for path in (*record.inputs, *record.outputs))

    def add_what_is_made(self, records: Iterable[Record]) -> None:
        """Add the outputs of stages that have read its data: tables of all corpora, the page, and so on."""
        records = list(records)
        grown = True
        while grown:
            made = {path for record in records if self.touches(record) for path in record.outputs}
            grown = any(not self.holds(path) for path in made)
            self.add(made)


def paths_of(name: str, root: Path) -> CorpusPaths:
    """The paths that ``dvc.yaml`` names after the corpus."""
    graph = yaml.safe_load((root / "dvc.yaml").read_text(encoding="utf-8"))
    texts = [text for stage in graph["stages"].values() for text in _outputs(stage)]
    for written, choices in _CHOSEN.items():
        texts = [text.replace(written, choice) for text in texts for choice in (choices if written in text else [""])]
    return CorpusPaths(path for text in texts if (path := _place(text, name)))


def _outputs(stage: Mapping[str, Any]) -> Iterator[str]:
    stage = stage.get("do", stage)
    for kind in ("outs", "metrics", "plots"):
        for entry in stage.get(kind) or ():
            yield from entry if isinstance(entry, dict) else (entry,)


def _place(text: str, name: str) -> str | None:
    """The path down to the first part with the corpus' name."""
    parts = text.split("/")
    for number, part in enumerate(parts, start=1):
        if part.startswith(_PATH):
            return "/".join([*parts[: number - 1], name])
        for written in _NAMES:
            if written in part:
                return "/".join([*parts[: number - 1], part.replace(written, name)])
    return None


def _above(path: str) -> Iterable[PurePosixPath]:
    return PurePosixPath(path).parents
