"""Language models in MLflow's registry: those of releases alone, one registered model for each data set, and the best
of its versions as ``champion``.

What may leave stands in the ledger of releases. The files below ``releases/NAME/model`` are copied where they are
those that the ledger names, and no others: a model of a cell that was not released has learned from private text, and
stays where it is. A run's tag ``model`` says where.
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
    from mlflow.entities.model_registry import ModelVersion

CHAMPION = "champion"
MODEL_TAG = "palimpsest.model"
"""Tag with the hash of the model that a run has a copy of."""
ARTIFACT = "language_model"
RELEASES = Path("releases")
_MODEL = "model/"
_DESCRIPTION = (
    "Language models of releases, each adapted on text that was masked and filled. What its masking technique left in "
    "clear a model has seen as it was."
)


@dataclass(frozen=True)
class ReleasedModel:
    """The language model of a release, whose files are those that the ledger names."""

    cell: Cell
    key: str
    """Key of the run whose training made it."""
    release: str
    """Name of the release."""
    digest: str
    """SHA-256 over the names and hashes of its files: they are public."""
    valid_perplexity: float | None
    """Perplexity of the validation text when training ended; ``None`` where training did not measure it."""

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return RELEASES / self.release / "model"


def released_models(rows: Sequence[Mapping[str, Any]], reports: str | Path) -> tuple[list[ReleasedModel], list[str]]:
    """The released models of the rows of a summary, in the ledger's order, and one sentence for each that is not what
    the ledger or the reports say."""
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
    """The model of a release, or what is wrong with it."""
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
    """SHA-256 of each file below a folder, by its name seen from there."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with open(path, "rb") as stream:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def champions(models: Iterable[ReleasedModel]) -> dict[str, ReleasedModel]:
    """The best released model of each data set: the least perplexity on the validation text.

    The test text has no say: it is there to measure the choice.
    """
    best: dict[str, ReleasedModel] = {}
    for model in models:
        dataset, perplexity = str(model.cell.dataset), model.valid_perplexity
        if perplexity is not None and (dataset not in best or perplexity < float(best[dataset].valid_perplexity or 0)):
            best[dataset] = model
    return best


def registered_name(settings: TrackingSettings, dataset: str) -> str:
    """Name under which the registry has the models of a data set."""
    return f"{settings.experiment}-{dataset}"


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
            _copy(model, run, store)
            copied += 1
        name = registered_name(settings, str(model.cell.dataset))
        version = _version(name, model, run, store.client)
        if best.get(str(model.cell.dataset)) == model:
            _crown(name, version, store.client)
    return copied


def _copy(model: ReleasedModel, run: "Run", store: TrackingStore) -> None:
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    from tasks.results.logged_language_model import save

    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        save(model.folder, Path(folder, ARTIFACT))
        repository = get_artifact_repository(run.info.artifact_uri, tracking_uri=store.uri)
        repository.log_artifacts(str(Path(folder, ARTIFACT)), ARTIFACT)
    store.client.set_tag(run.info.run_id, MODEL_TAG, model.digest)


def _version(name: str, model: ReleasedModel, run: "Run", client: "MlflowClient") -> str:
    """The version of a model, made where there is none."""
    from mlflow.exceptions import MlflowException

    if not client.search_registered_models(f"name = '{name}'"):
        try:
            client.create_registered_model(name, description=_DESCRIPTION)
        except MlflowException:
            # Another machine may have made it at the same moment.
            if not client.search_registered_models(f"name = '{name}'"):
                raise
    versions = client.search_model_versions(f"name = '{name}'")
    mine = [version for version in versions if version.tags.get(MODEL_TAG) == model.digest]
    if mine:
        return _first(mine)
    tags = {MODEL_TAG: model.digest, "cell": model.cell.path, "release": model.release}
    if model.valid_perplexity is not None:
        tags["valid_perplexity"] = f"{model.valid_perplexity:.4f}"
    created = client.create_model_version(
        name,
        source=f"{run.info.artifact_uri}/{ARTIFACT}",
        run_id=run.info.run_id,
        tags=tags,
        description=f"Adapted on text that was masked by {model.cell.technique} and filled; what that left in clear "
        f"it has seen as it was. Released as {model.release}.",
    )
    made = str(created.version)
    # Through a server another machine may have made one at the same moment: the first of them stays.
    found = client.search_model_versions(f"name = '{name}'")
    version = _first([other for other in found if other.tags.get(MODEL_TAG) == model.digest])
    if version != made:
        client.delete_model_version(name, made)
    return version


def _crown(name: str, version: str, client: "MlflowClient") -> None:
    """Make a version the champion."""
    from mlflow.exceptions import MlflowException

    if _champion(name, client) != version:
        try:
            client.set_registered_model_alias(name, CHAMPION, version)
        except MlflowException:
            if _champion(name, client) != version:
                raise


def _first(versions: "Sequence[ModelVersion]") -> str:
    return str(min(versions, key=lambda version: int(version.version)).version)


def _champion(name: str, client: "MlflowClient") -> str | None:
    """The version that has the alias."""
    version = client.get_registered_model(name).aliases.get(CHAMPION)
    return None if version is None else str(version)
