"""Language models in MLflow's registry: one registered model for each data set, and its best version as ``champion``.

A model leaves its folder only where it was trained on masked or obfuscated text, or on generic text alone: its path
lies below ``models/``. One that was trained on raw text (Oracle) lies below ``data/private`` and is never copied; its
run has the tag ``model`` that says where it lies.
"""

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.reports.cell import Cell
from tasks.reports.expected_cells import NO_LANGUAGE_MODEL, training_report
from tasks.reports.stage_report import content_hash, read_report
from tasks.reports.summary.summary_file import summarised_cell
from tasks.reports.tracking.curve import curve_of
from tasks.reports.tracking.settings import TrackingSettings
from tasks.reports.tracking.tracking_store import TrackingStore

CHAMPION = "champion"
MODEL_TAG = "palimpsest.model"
"""Tag with the hash of the model that a run has a copy of."""
ARTIFACT = "language_model"
_PUBLIC = Path("models")


@dataclass(frozen=True)
class TrainedModel:
    """The language model of a cell."""

    cell: Cell
    key: str
    folder: Path
    digest: str
    """SHA-256 of the folder, as training wrote it."""
    valid_perplexity: float | None
    """Perplexity of the validation text when training ended; ``None`` where training did not measure it."""

    @property
    def may_leave(self) -> bool:
        """Whether the model may be copied: it never saw raw private text."""
        return self.folder.is_relative_to(_PUBLIC) and ".." not in self.folder.parts and self.cell.method != "oracle"


def trained_models(rows: Sequence[Mapping[str, Any]], reports: str | Path) -> list[TrainedModel]:
    """The language models of the rows of a summary."""
    models = []
    for row in rows:
        cell = summarised_cell(row)
        if cell.method == NO_LANGUAGE_MODEL:
            continue
        report = read_report(Path(reports) / training_report(cell))
        losses = [point["valid_loss"] for point in curve_of(report) if point.get("valid_loss") is not None]
        for path, digest in report["outputs"].items():
            perplexity = math.exp(losses[-1]) if losses else None
            models.append(TrainedModel(cell, row["key"], Path(path), digest, perplexity))
    return models


def champions(models: Sequence[TrainedModel]) -> dict[str, TrainedModel]:
    """The best adapted model of each data set that may leave: the least perplexity on the validation text.

    The test text has no say: it is there to measure the choice.
    """
    best: dict[str, TrainedModel] = {}
    for model in models:
        if not model.may_leave or model.cell.technique is None or model.valid_perplexity is None:
            continue
        dataset = str(model.cell.dataset)
        if dataset not in best or model.valid_perplexity < float(best[dataset].valid_perplexity or math.inf):
            best[dataset] = model
    return best


def registered_name(settings: TrackingSettings, dataset: str) -> str:
    """Name under which the registry has the models of a data set."""
    return f"{settings.experiment}-{dataset}"


def register_models(
    models: Sequence[TrainedModel], run_ids: Mapping[str, str], store: TrackingStore, settings: TrackingSettings
) -> tuple[int, list[str]]:
    """Copy what the settings ask for and set the alias; call it with the store's lock held.

    Returns the number of models copied now, and one sentence for each that could not be.
    """
    if settings.models == "none":
        return 0, []
    best = champions(models)
    chosen = list(best.values()) if settings.models == "champions" else [model for model in models if model.may_leave]
    copied, problems = 0, []
    for model in chosen:
        run = store.client.get_run(run_ids[model.key])
        if run.data.tags.get(MODEL_TAG) != model.digest:
            if not model.folder.is_dir() or content_hash(model.folder) != model.digest:
                problems.append(f"the model of {model.cell.path} is not at {str(model.folder)!r} as its report says")
                continue
            _copy(model, run, store)
            copied += 1
        dataset = str(model.cell.dataset)
        if best.get(dataset) == model:
            _crown(registered_name(settings, dataset), model, run, store.client)
    return copied, problems


def _copy(model: TrainedModel, run: Any, store: TrackingStore) -> None:
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    from tasks.reports.logged_language_model import save

    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        save(model.folder, Path(folder, ARTIFACT))
        repository = get_artifact_repository(run.info.artifact_uri, tracking_uri=store.uri)
        repository.log_artifacts(str(Path(folder, ARTIFACT)), ARTIFACT)
    store.client.set_tag(run.info.run_id, MODEL_TAG, model.digest)


def _crown(name: str, model: TrainedModel, run: Any, client: Any) -> None:
    """Make a run's model the champion; a version that is there already is not made again."""
    from mlflow.exceptions import MlflowException

    if not client.search_registered_models(f"name = '{name}'"):
        try:
            client.create_registered_model(
                name, description="Language models adapted on masked or obfuscated text; none has seen raw text."
            )
        except MlflowException:
            # Another machine may have made it at the same moment.
            if not client.search_registered_models(f"name = '{name}'"):
                raise
    versions = client.search_model_versions(f"name = '{name}'")
    mine = [version for version in versions if version.tags.get(MODEL_TAG) == model.digest]
    if mine:
        version = _first(mine)
    else:
        created = client.create_model_version(
            name,
            source=f"{run.info.artifact_uri}/{ARTIFACT}",
            run_id=run.info.run_id,
            tags={
                MODEL_TAG: model.digest,
                "cell": model.cell.path,
                "valid_perplexity": f"{model.valid_perplexity:.4f}",
            },
        )
        made = str(created.version)
        # Through a server another machine may have made one at the same moment: the first of them stays.
        found = client.search_model_versions(f"name = '{name}'")
        version = _first([other for other in found if other.tags.get(MODEL_TAG) == model.digest])
        if version != made:
            client.delete_model_version(name, made)
    if _champion(name, client) != version:
        try:
            client.set_registered_model_alias(name, CHAMPION, version)
        except MlflowException:
            if _champion(name, client) != version:
                raise


def _first(versions: Sequence[Any]) -> str:
    return str(min(versions, key=lambda version: int(version.version)).version)


def _champion(name: str, client: Any) -> str | None:
    """The version that has the alias."""
    version = client.get_registered_model(name).aliases.get(CHAMPION)
    return None if version is None else str(version)
