"""Language models of releases in MLflow's registry: one registered model a data set, its best version ``champion``.

Files in ``releases/NAME/model`` are copied if they match the ledger of releases. No other model is copied: the model of
an unreleased cell has learned from private text.
"""

import hashlib
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.privacy.ledger import read_ledger
from tasks.records.cell import Cell
from tasks.records.cells import is_filled, training_report
from tasks.records.stage_report import content_hash, read_report
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tracking.run_record import curve_of
from tasks.results.tracking.settings import TrackingSettings

if TYPE_CHECKING:
    from mlflow import MlflowClient

CHAMPION = "champion"
MODEL_TAG = "palimpsest.model"
"""Tag with the hash of the model of which a version has a copy."""
ARTIFACT, _MODEL = "language_model", "model/"
_DESCRIPTION = (
    "Adapted on text that was masked by {technique} and filled. The model has read every word that the technique left "
    "unmasked. Released as {release}."
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
    valid_perplexity: float
    """Perplexity of the validation text at the end of training; infinite if training did not measure it."""

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path("releases", self.release, "model")


def released_models(rows: Sequence[Mapping[str, Any]], reports: Path) -> tuple[list[ReleasedModel], list[str]]:
    """The released models of a summary's rows, in the ledger's order, and one sentence for each that does not
    match the ledger or the reports."""
    by_cell = {cell.path: (cell, row["key"]) for row in rows if is_filled(cell := summarised_cell(row))}
    models, problems = [], []
    for release in read_ledger():
        files = {name.removeprefix(_MODEL): digest for name, digest in release.files.items() if name.startswith(_MODEL)}
        if release.withdrawn or not files or release.cell not in by_cell:
            continue
        cell, key = by_cell[release.cell]
        report = read_report(reports / training_report(cell))
        losses = [loss for (name, _), loss in curve_of(report).items() if name == "valid_loss"]
        digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        model = ReleasedModel(cell, key, release.name, digest, math.exp(losses[-1]) if losses else math.inf)
        found = {
            path.relative_to(model.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in model.folder.rglob("*")
            if path.is_file()
        }
        if found == files and content_hash(model.folder) in report["outputs"].values():
            models.append(model)
        else:
            problems.append(
                f"the model of release {release.name!r} is not in MLflow's registry: the files in "
                f"{str(model.folder)!r} are not those of the ledger and of the reports of {cell.path}; 'dvc pull' them"
            )
    return models, problems


def register_models(
    models: Sequence[ReleasedModel], run_ids: Mapping[str, str], client: "MlflowClient", settings: TrackingSettings
) -> int:
    """Copy the models into their runs, register them and set the alias; call it with the store's lock held.

    The alias goes to the lowest perplexity on the validation text: the test text measures the choice. Returns the
    number of models copied now.
    """
    from tasks.results.logged_language_model import save

    copied = 0
    # The best one last, so that the alias stays with it.
    for model in sorted(models, key=lambda model: -model.valid_perplexity):
        name = f"{settings.experiment}-{model.cell.dataset}"
        if not client.search_registered_models(f"name = '{name}'"):
            client.create_registered_model(name)
        versions = client.search_model_versions(f"name = '{name}'")
        version = next((each for each in versions if each.tags.get(MODEL_TAG) == model.digest), None)
        if version is None:
            run_id = run_ids[model.key]
            with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
                save(model.folder, Path(folder, ARTIFACT))
                client.log_artifacts(run_id, str(Path(folder, ARTIFACT)), ARTIFACT)
            tags = {MODEL_TAG: model.digest, "cell": model.cell.path, "release": model.release}
            said = _DESCRIPTION.format(technique=model.cell.technique, release=model.release)
            source = f"{client.get_run(run_id).info.artifact_uri}/{ARTIFACT}"
            version = client.create_model_version(name, source, run_id, tags, description=said)
            copied += 1
        if math.isfinite(model.valid_perplexity):
            client.set_registered_model_alias(name, CHAMPION, str(version.version))
    return copied
