"""Where in a checkout a corpus is: the paths that ``dvc.yaml`` writes for it, and what is made of them.

The graph is the list. Each output with the name of a corpus in its path is a place of the corpus of that name, down to
that part of the path: so cells of an earlier comparison are found too, which no stage has any more.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from flows.erasure.dvc_records import Record
from tasks.parameters.cells_file import MODELS, MODELS_OF_RAW_TEXT
from tasks.records.cells import MASK_REPORTS

_NAMES = ("${item.dataset}", "${item.cell.dataset}", "${key}")
"""How ``dvc.yaml`` writes the name of a corpus: in a matrix, of a cell, and in a ``foreach`` over corpora and labelled
text that has a corpus' name."""
_PATH = "${item.path}"
"""The path of a cell, which begins with the name."""
_CHOSEN = {
    "${item.model}": [f"{folder}/{_PATH}" for folder in (MODELS, MODELS_OF_RAW_TEXT)],
    "${item.report}": list(MASK_REPORTS.values()),
}
"""What else may stand there, by cell."""


class CorpusPaths:
    """Paths of a checkout that hold something of a corpus."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: set[str] = set()
        self._above: set[str] = set()
        self.add(paths)

    def add(self, paths: Iterable[str]) -> None:
        """More of them."""
        for path in paths:
            self._paths.add(path)
            self._above.update(map(str, PurePosixPath(path).parents))

    def __iter__(self) -> Iterator[str]:
        """Each path that lies in no other."""
        return iter(sorted(path for path in self._paths if not any(str(one) in self._paths for one in _above(path))))

    def holds(self, path: str) -> bool:
        """Whether a file or folder lies in one of them."""
        return path in self._paths or any(str(one) in self._paths for one in _above(path))

    def touches(self, record: Record) -> bool:
        """Whether a stage has read or written something of the corpus; a folder above all corpora counts too."""
        return any(path in self._above or self.holds(path) for path in (*record.inputs, *record.outputs))

    def add_what_is_made(self, records: Iterable[Record]) -> None:
        """Add the outputs of stages that have read something of it: tables of all corpora, the page, and so on."""
        records = list(records)
        grown = True
        while grown:
            made = {path for record in records if self.touches(record) for path in record.outputs}
            grown = any(not self.holds(path) for path in made)
            self.add(made)


def paths_of(name: str, root: Path) -> CorpusPaths:
    """What ``dvc.yaml`` names after the corpus."""
    graph = yaml.safe_load((root / "dvc.yaml").read_text(encoding="utf-8"))
    texts = [text for stage in graph["stages"].values() for text in _outputs(stage)]
    for written, choices in _CHOSEN.items():
        texts = [text.replace(written, choice) for text in texts for choice in (choices if written in text else [""])]
    return CorpusPaths(path for text in texts if (path := _place(text, name)))


def _outputs(stage: Any) -> Iterator[str]:
    stage = stage.get("do", stage)
    for kind in ("outs", "metrics", "plots"):
        for entry in stage.get(kind) or ():
            yield from entry if isinstance(entry, dict) else (entry,)


def _place(text: str, name: str) -> str | None:
    """The path down to the first part that has the corpus' name."""
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
