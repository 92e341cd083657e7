"""The files that stand beside a run in MLflow: plots, and made-up sentences as its cell masks and fills them.

The only text among them is that of ``palimpsest examples``, which anybody may read. No corpus is read for it: neither
raw nor masked nor filled text.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.records.cell import Cell
from tasks.records.stage_report import read_report
from tasks.results.tracking.run_plots import curve_plot, perplexity_plot

ARTIFACTS_TAG = "palimpsest.files"
"""Tag with a hash of a run's files: publishing again sends none that is there."""
EARLIER_TAG = "palimpsest.artifacts"
"""The same of versions that sent lines of filled text, and DVC's hashes of private files."""
MADE_UP = "samples/made_up.txt"
FOLDERS = ("plots", "samples")


def run_artifacts(
    cell: Cell,
    curve: Mapping[tuple[str, int], float],
    rows: Sequence[Mapping[str, Any]],
    made_up: Mapping[Cell, str],
) -> dict[str, str]:
    """Content of each file by its name; ``made_up``: the texts of ``made_up_texts``."""
    files = {
        "plots/training_curve.svg": curve_plot(cell, curve),
        "plots/perplexity_by_method.svg": perplexity_plot(cell, rows),
        MADE_UP: made_up.get(cell),
    }
    return {name: content for name, content in files.items() if content is not None}


def made_up_texts(reports: str | Path) -> dict[Cell, str]:
    """Made-up sentences raw, masked and filled, by the cell that masks and fills so: those of the page's examples."""
    texts = {}
    for path in sorted(Path(reports, "examples").rglob("*.json")):
        report = read_report(path)
        measured, dataset, seed = report["measured"], report["cell"]["dataset"], report["seed"]
        for entry in measured["by_technique"]:
            for fill in entry["filled"]:
                cell = Cell(dataset, entry["technique"], fill["method"], fill["filler"], seed)
                forms = zip(measured["raw"], entry["masked"], fill["lines"], strict=True)
                texts[cell] = "Made-up sentences, not of the corpus.\n" + "".join(
                    f"\nraw     {raw}\nmasked  {masked}\nfilled  {filled}\n" for raw, masked, filled in forms
                )
    return texts


def fingerprint(files: Mapping[str, str]) -> str:
    """What the tag of a run with these files says."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0{content}".encode())
    return digest.hexdigest()[:16]


def send(artifact_uri: str, tracking_uri: str, files: Mapping[str, str], *, replace: bool) -> None:
    """Put the files into a run's place for artifacts; ``replace`` takes away those that were there."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    repository = get_artifact_repository(artifact_uri, tracking_uri=tracking_uri)
    if replace:
        present = {entry.path for entry in repository.list_artifacts()}
        for folder in present.intersection(FOLDERS):
            repository.delete_artifacts(folder)
    if not files:
        return
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
        repository.log_artifacts(folder)
