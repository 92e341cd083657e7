"""All reports of an experiment, and the maker of each file: the chain from a number back to its sources."""

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tasks.errors import CorpusError
from tasks.records.cell import Cell
from tasks.records.cells import MASK_REPORTS, RESCORE, stage_name, training_report
from tasks.records.run_key import lineage_of, run_key
from tasks.records.stage_report import read_report

REPORTS = "results/reports"
"""Folder of the reports of an experiment's stages."""

PRIVATE_CORPORA = Path("data/private/corpora")

_SAME, _INSIDE, _ABOVE, _CHANGED, _OTHER_KEY = "same", "inside", "above", "changed", "other_key"


@dataclass(frozen=True)
class Link:
    """An input of a stage and its origin."""

    path: str
    """File or folder, in the stage's spelling."""
    digest: str
    """Keyed hash that the stage computed."""
    made_by: str | None
    """Report of the stage that made it; ``None`` for a source."""
    agreement: str | None
    """``same``: the maker's report has the same hash; ``inside``: the file is in a folder that was made as a whole;
    ``above``: the maker wrote files in this folder; ``changed``: the maker has made it again since; ``other_key``: the
    maker's report is of another clone, whose hashes cannot be compared with this one's. ``None`` for a source."""


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
        """The stage of ``dvc.yaml`` that wrote a report; computed if it was not run through DVC."""
        report = self.reports[name]
        if report["dvc_stage"]:
            return str(report["dvc_stage"])
        kind, _, path = name.partition("/")
        recognised = RESCORE if report["stage"] == RESCORE else "recognise"
        filled = "distil" if report["stage"] == "distil" else "fill"
        steps = {"perplexity": "evaluate", "word_error_rate": recognised, "fill": filled}
        steps |= {step: step for step in ("adapt", "audit")}
        if kind in steps and report["cell"].get("method"):
            return stage_name(cell_of_report(report), steps[kind])
        masked = {folder: f"mask@{part}-" for part, folder in MASK_REPORTS.items()}
        return masked.get(kind, f"{kind}@") + path.replace("/", "-")

    def key_of(self, name: str) -> str | None:
        """The key of the cell of an evaluation's report; ``None`` if the training's report is missing."""
        cell = cell_of_report(self.reports[name])
        training = self.reports.get(training_report(cell).with_suffix("").as_posix())
        return run_key(cell, lineage_of(training)) if training else None

    def links(self, name: str) -> list[Link]:
        """The inputs of a stage and their makers; a folder has a link to each of its makers."""
        report = self.reports[name]
        return [
            link
            for path, digest in report["inputs"].items()
            for link in self._links(path, digest, report.get("hash_key"))
        ]

    def _links(self, path: str, digest: str, hash_key: str | None) -> list[Link]:
        if path in self._makers:
            maker = self._makers[path]
            made = self.reports[maker]
            same = _SAME if made["outputs"][path] == digest else _CHANGED
            return [Link(path, digest, maker, same if made.get("hash_key") == hash_key else _OTHER_KEY)]
        for parent in map(str, PurePosixPath(path).parents):
            if parent in self._makers:
                return [Link(path, digest, self._makers[parent], _INSIDE)]
        parts = dict.fromkeys(maker for output, maker in self._makers.items() if output.startswith(f"{path}/"))
        return [Link(path, digest, maker, _ABOVE) for maker in parts] or [Link(path, digest, None, None)]

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
