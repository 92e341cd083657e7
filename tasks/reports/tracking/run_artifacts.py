"""The files that stand beside a run in MLflow: plots, a sample of its obfuscated text, and its part of ``dvc.lock``.

The only text among them is the beginning of a file below ``data/obfuscated``, where it is the very file that the run's
fill wrote. Raw text, masked text and sidecars are never read.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tasks.reports.cell import Cell
from tasks.reports.origin.lock_entries import lock_text
from tasks.reports.stage_report import content_hash
from tasks.reports.tracking.run_plots import curve_plot, perplexity_plot

ARTIFACTS_TAG = "palimpsest.artifacts"
"""Tag with a hash of a run's files: publishing again sends none that is there."""
LOCK_ARTIFACT = "lineage/dvc.lock"
OBFUSCATED = Path("data/obfuscated")
FOLDERS = ("plots", "samples", "lineage")


def run_artifacts(
    cell: Cell,
    curve: Mapping[tuple[str, int], float],
    rows: Sequence[Mapping[str, Any]],
    fill: Mapping[str, Any] | None,
    entries: Mapping[str, Any],
    sample_lines: int,
) -> dict[str, str]:
    """Content of each file by its name. ``fill`` is the report of the cell's fill, ``entries`` its part of the lock."""
    files = {
        "plots/training_curve.svg": curve_plot(cell, curve),
        "plots/perplexity_by_method.svg": perplexity_plot(cell, rows),
        "samples/obfuscated.txt": sample(fill, sample_lines) if fill else None,
        LOCK_ARTIFACT: lock_text(entries) if entries else None,
    }
    return {name: content for name, content in files.items() if content is not None}


def sample(fill: Mapping[str, Any], lines: int) -> str | None:
    """The first lines of the obfuscated text that a fill wrote; ``None`` where none are wanted, or where that very
    text is not there."""
    paths = [Path(path) for path in fill["outputs"] if Path(path).is_relative_to(OBFUSCATED) and ".." not in path]
    if lines == 0 or len(paths) != 1 or not paths[0].is_file():
        return None
    if content_hash(paths[0]) != fill["outputs"][str(paths[0])]:
        return None
    with open(paths[0], encoding="utf-8") as stream:
        return "".join(islice(stream, lines))


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
