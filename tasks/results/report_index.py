"""All reports of an experiment, and the maker of each file: the chain from a number back to its sources."""

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tasks.errors import CorpusError
from tasks.records.cell import Cell
from tasks.records.cells import training_report
from tasks.records.run_key import lineage_of, run_key
from tasks.records.stage_report import read_report

REPORTS = "results/reports"
"""Folder of the reports of an experiment's stages."""

PRIVATE_CORPORA = Path("data/private/corpora")


@dataclass(frozen=True)
class Link:
    """An input of a stage and its origin."""

    path: str
    """File or folder, in the stage's spelling."""
    digest: str
    """Keyed hash that the stage computed."""
    made_by: str | None
    """Report of the stage that made it; ``None`` for a source."""
    origin: str
    """``a source``, or the stage that made it, and whether it has made it again since."""


def makers_of(path: str, makers: Mapping[str, str]) -> list[str]:
    """The makers of a path, or of the nearest folder above it, or of all outputs below it."""
    for place in (path, *map(str, PurePosixPath(path).parents)):
        if place in makers:
            return [makers[place]]
    return list(dict.fromkeys(maker for output, maker in makers.items() if output.startswith(f"{path}/")))


class ReportIndex:
    """The reports in a folder, by name (their path in it without ending)."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise CorpusError(f"folder of reports {str(folder)!r} does not exist; run 'dvc repro', or name it")
        self.reports: dict[str, dict[str, Any]] = {
            path.relative_to(self.folder).with_suffix("").as_posix(): read_report(path)
            for path in sorted(self.folder.rglob("*.json"))
        }
        self._makers = {output: name for name, report in self.reports.items() for output in report["outputs"]}

    def of_datasets(self, datasets: Collection[str]) -> "ReportIndex":
        """The index without reports of other private corpora, which remain from an earlier comparison."""
        others = [name for name, report in self.reports.items() if _dataset(report) not in (None, *datasets)]
        rest = copy(self)
        rest.reports = {name: report for name, report in self.reports.items() if name not in others}
        return rest

    def cells(self) -> dict[str, str]:
        """Paths of all evaluated cells, with the name of their report: of perplexity if there is one.

        Word error rates have reports of their own, and are found by these or by their stages.
        """
        found: dict[str, str] = {}
        for folder in ("word_error_rate/", "perplexity/"):
            found |= {name.removeprefix(folder): name for name in self.reports if name.startswith(folder)}
        return found

    def stages(self) -> dict[str, str]:
        """Names of the stages of ``dvc.yaml``, with the name of their report."""
        return {self.stage_of(name): name for name in self.reports}

    def stage_of(self, name: str) -> str:
        """The stage of ``dvc.yaml`` that wrote a report; the report's name if it was not run through DVC."""
        return str(self.reports[name]["dvc_stage"] or name)

    def key_of(self, name: str) -> str | None:
        """The key of the cell of an evaluation's report; ``None`` if the training's report is missing."""
        cell = cell_of_report(self.reports[name])
        training = self.reports.get(training_report(cell).with_suffix("").as_posix())
        return run_key(cell, lineage_of(training)) if training else None

    def links(self, name: str) -> list[Link]:
        """The inputs of a stage and their makers; a folder has a link to each of its makers."""
        found = []
        for path, digest in self.reports[name]["inputs"].items():
            makers = makers_of(path, self._makers)
            found += [Link(path, digest, maker, self._origin(name, path, maker)) for maker in makers]
            found += [] if makers else [Link(path, digest, None, "a source")]
        return found

    def _origin(self, name: str, path: str, maker: str) -> str:
        report, made, stage = self.reports[name], self.reports[maker], self.stage_of(maker)
        if path not in made["outputs"]:
            inside = any(path.startswith(f"{output}/") for output in made["outputs"])
            return f"{'in a folder' if inside else 'with files'} made by {stage}"
        if made.get("hash_key") != report.get("hash_key"):
            return f"made by {stage} in another clone, whose hashes have another key"
        if made["outputs"][path] == report["inputs"][path]:
            return f"made by {stage}"
        return f"CHANGED SINCE: {stage} has made it again; run 'dvc repro'"

    def chain(self, name: str) -> list[str]:
        """The report itself and those of all stages before it: each once, and before the ones that it needs."""
        finished: dict[str, None] = {}

        def visit(current: str) -> None:
            for link in reversed(self.links(current)):
                if link.made_by is not None and link.made_by not in finished:
                    visit(link.made_by)
            finished[current] = None

        visit(name)
        return [*reversed(finished)]


def _dataset(report: Mapping[str, Any]) -> str | None:
    """The private corpus of a report; ``None`` for generic text and its derivatives."""
    if report["stage"] == "corpora":
        places = (Path(path) for path in report["outputs"])
        return next((path.name for path in places if path.parent == PRIVATE_CORPORA), None)
    return report["cell"].get("dataset")


def cell_of_report(report: Mapping[str, Any]) -> Cell:
    """The cell that a report names."""
    return Cell(**{name: report["cell"].get(name) for name in Cell.__dataclass_fields__})
