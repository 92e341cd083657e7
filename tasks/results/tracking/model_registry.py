"""Language models of releases in MLflow's registry: one registered model a data set, its best version ``champion``.

Files in ``releases/NAME/model`` are copied if they match the ledger of releases. No other model is copied: the model of
an unreleased cell has learned from private text.
"""

import hashlib
import json
import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.privacy.ledger import Release, read_ledger
from tasks.records.cell import Cell
from tasks.records.cells import is_filled, training_report
from tasks.records.stage_report import content_hash, read_report
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tracking.curve import curve_of
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import TrackingStore

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

CHAMPION = "champion"
MODEL_TAG = "palimpsest.model"
"""Tag with the hash of the model of which a run has a copy."""
ARTIFACT = "language_model"
RELEASES = Path("releases")
_MODEL = "model/"
_DESCRIPTION = (
    "Language models of releases, each adapted on text that was masked and filled. "
    "A model has read every word that its masking technique left unmasked."
)


@dataclass(frozen=True)
class ReleasedModel:
    """The language model of a release, with files that match the ledger."""

    cell: Cell
    key: str
    """Key of the run that trained it."""
    release: str
    """Name of the release."""
    digest: str
    """SHA-256 over the names and hashes of its files: they are public."""
    valid_perplexity: float | None
    """Perplexity of the validation text at the end of training; ``None`` if training did not measure it."""

    @property
    def folder(self) -> Path:
        """Its folder."""
        return RELEASES / self.release / "model"


def released_models(rows: Sequence[Mapping[str, Any]], reports: str | Path) -> tuple[list[ReleasedModel], list[str]]:
    """The released models of a summary's rows, in the ledger's order, and one sentence for each that does not
    match the ledger or the reports."""
    by_cell = {summarised_cell(row).path: row for row in rows}
    models, problems = [], []
    for release in read_ledger():
        files = {name.removeprefix(_MODEL): digest for name, digest in release.files.items() if name.startswith(_MODEL)}
        row = by_cell.get(release.cell)
        if release.withdrawn or not files or row is None or not is_filled(summarised_cell(row)):
            continue
        model = _released_model(release, files, row, reports)
        if isinstance(model, str):
            problems.append(f"the model of release {release.name!r} {model}; it is not in MLflow's registry")
        else:
            models.append(model)
    return models, problems


def _released_model(
    release: Release, files: Mapping[str, str], row: Mapping[str, Any], reports: str | Path
) -> ReleasedModel | str:
    """The model of a release, or the error."""
    cell = summarised_cell(row)
    report = read_report(Path(reports) / training_report(cell))
    losses = [point["valid_loss"] for point in curve_of(report) if point.get("valid_loss") is not None]
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    perplexity = math.exp(losses[-1]) if losses else None
    model = ReleasedModel(cell, row["key"], release.name, digest, perplexity)
    if _hashes(model.folder) != files:
        return f"is not at {str(model.folder)!r} as the ledger says; 'dvc pull' it, or bring a copy back"
    if content_hash(model.folder) not in report["outputs"].values():
        return f"is of another state of {cell.path} than the reports"
    return model


def _hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, by its relative name."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with open(path, "rb") as stream:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def champions(models: Iterable[ReleasedModel]) -> dict[str, ReleasedModel]:
    """The best released model of each data set: the lowest perplexity on the validation text.

    The test text does not count: it measures the choice.
    """
    best: dict[str, ReleasedModel] = {}
    for model in models:
        dataset, perplexity = str(model.cell.dataset), model.valid_perplexity
        if perplexity is not None and (dataset not in best or perplexity < float(best[dataset].valid_perplexity or 0)):
            best[dataset] = model
    return best


def register_models(
    models: Sequence[ReleasedModel], run_ids: Mapping[str, str], store: TrackingStore, settings: TrackingSettings
) -> int:
    """Copy the models into their runs, register them and set the alias; call it with the store's lock held.

    Returns the number of models copied now.
    """
    best = champions(models)
    copied = 0
    for model in models:
        run = store.client.get_run(run_ids[model.key])
        if run.data.tags.get(MODEL_TAG) != model.digest:
            _copy(model, run_ids[model.key], store)
            copied += 1
        name = f"{settings.experiment}-{model.cell.dataset}"
        version = _version(name, model, run, store.client)
        if best.get(str(model.cell.dataset)) == model:
            aliases = store.client.get_registered_model(name).aliases
            if str(aliases.get(CHAMPION)) != version:
                store.client.set_registered_model_alias(name, CHAMPION, version)
    return copied


def _copy(model: ReleasedModel, run_id: str, store: TrackingStore) -> None:
    from tasks.results.logged_language_model import save

    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        save(model.folder, Path(folder, ARTIFACT))
        store.client.log_artifacts(run_id, str(Path(folder, ARTIFACT)), ARTIFACT)
    store.client.set_tag(run_id, MODEL_TAG, model.digest)


def _version(name: str, model: ReleasedModel, run: "Run", client: "MlflowClient") -> str:
    """The version of a model, made if there is none."""
    if not client.search_registered_models(f"name = '{name}'"):
        client.create_registered_model(name, description=_DESCRIPTION)
    for version in client.search_model_versions(f"name = '{name}'"):
        if version.tags.get(MODEL_TAG) == model.digest:
            return str(version.version)
    tags = {MODEL_TAG: model.digest, "cell": model.cell.path, "release": model.release}
    if model.valid_perplexity is not None:
        tags["valid_perplexity"] = f"{model.valid_perplexity:.4f}"
    created = client.create_model_version(
        name,
        source=f"{run.info.artifact_uri}/{ARTIFACT}",
        run_id=run.info.run_id,
        tags=tags,
        description=f"Adapted on text that was masked by {model.cell.technique} and filled. The model has read every "
        f"word that the technique left unmasked. Released as {model.release}.",
    )
    return str(created.version)
