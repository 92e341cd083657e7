"""The folder of a text to which a cell was applied ('palimpsest apply'): its files, and the check before a release."""

import hashlib
import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError, ParameterError
from tasks.privacy.earlier_releases import RAW, SIDECAR
from tasks.privacy.released_cell import FilledCell
from tasks.records.stage_report import content_hash
from tasks.spelling import nearest

TEXT, REPORT, WRITTEN_BACK = "text.txt", "report.json", "files"
FILES = (TEXT, RAW, SIDECAR)
STAGE = "apply"
APPLIED = "data/private/applied"
"""Folder of applied texts; 'palimpsest forget' removes those of a corpus."""


@dataclass(frozen=True)
class AppliedText:
    """A finished folder, with the report in it."""

    folder: Path
    report: dict[str, Any]

    @property
    def text(self) -> Path:
        """The text as the cell has it."""
        return self.folder / TEXT

    @property
    def raw(self) -> Path:
        """The private text, a sentence a line."""
        return self.folder / RAW

    @property
    def sidecar(self) -> Path:
        """The masked words."""
        return self.folder / SIDECAR

    @property
    def files(self) -> dict[str, Path]:
        """Copies of the user's files with fills in place of texts, by their name in the release: a number, since the
        name of a file may be that of a person."""
        names = [name for name in self.report["outputs"] if name.startswith(f"{WRITTEN_BACK}/")]
        return {
            f"{WRITTEN_BACK}/{number}{Path(name).suffix}": self.folder / name
            for number, name in enumerate(names, start=1)
        }

    @property
    def fields(self) -> list[str]:
        """Fields of these files that are not filled."""
        return sorted({field for each in self.report.get("written_back", {}).values() for field in each})

    def check_fields(self, public: Collection[str]) -> None:
        """Raise ``ParameterError`` if a field that is not filled is none of the ``public`` ones, or the reverse."""
        fields = self.fields
        unknown = [field for field in public if field not in fields]
        if unknown:
            raise ParameterError(
                f"--public-field {unknown[0]!r}: there is no such field{nearest(unknown[0], fields)}. Fields that "
                f"are not filled: {', '.join(fields) or 'none'}"
            )
        private = [field for field in fields if field not in public]
        if private:
            raise ParameterError(
                f"The files have fields that are not filled: {', '.join(private)}. Take those that say who somebody is "
                "out of your file, and apply again. Name each of the others: --public-field FIELD"
            )

    def check(self, cell: str, state: str) -> None:
        """Raise ``CorpusError`` if it was made by another cell or state of it, or if a file has changed since."""
        again = f"Run: palimpsest apply {cell} with its --input and --output again"
        if self.report["cell"] != cell:
            raise CorpusError(
                f"--applied {str(self.folder)!r} was made by {self.report['cell']!r}, not {cell!r}. {again}"
            )
        if self.report["state"] != state:
            raise CorpusError(f"--applied {str(self.folder)!r} was made by another state of {cell!r}. {again}")
        for name in self.report["outputs"]:
            if not (self.folder / name).is_file() or content_hash(self.folder / name) != self.report["outputs"][name]:
                raise CorpusError(f"{str(self.folder / name)!r} is not what 'palimpsest apply' wrote. {again}")


def read_applied(folder: str | Path) -> AppliedText:
    """A finished folder; ``CorpusError`` for an unfinished or another one."""
    path = Path(folder) / REPORT
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        report = None
    if not isinstance(report, dict) or report.get("stage") != STAGE:
        raise CorpusError(
            f"{str(folder)!r} is no finished folder of 'palimpsest apply': it has no {REPORT} of it. Apply the cell "
            "first; an interrupted call goes on where it was"
        )
    return AppliedText(Path(folder), report)


def with_applied(cell: FilledCell, folder: str | Path, public_fields: Collection[str] = ()) -> FilledCell:
    """The cell with the text of a folder that it was applied to. Raises the errors of ``AppliedText.check`` and
    ``AppliedText.check_fields``."""
    applied = read_applied(folder)
    applied.check(cell.cell.path, state_of([cell.mask, cell.fill]))
    applied.check_fields(public_fields)
    return replace(cell, applied=applied)


def state_of(reports: Sequence[dict[str, Any]]) -> str:
    """The hash of the settings and files of a cell, by the reports of its steps."""
    parts = [[report[name] for name in ("parameters", "seed", "inputs", "outputs")] for report in reports]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def whole_text(cell: str, dataset: str, corpus: Mapping[str, Any]) -> str:
    """The shell command that applies a cell to the whole text of a corpus. ``corpus``: settings of its reader."""
    output = f"{APPLIED}/{dataset}"
    given = {"--text-field": corpus.get("text_field"), "--document-field": corpus.get("document_field")}
    fields = [word for option, name in given.items() if name not in (None, "text") for word in (option, str(name))]
    return shlex.join(["palimpsest", "apply", cell, "--input", corpus["source"], "--output", output, *fields])
