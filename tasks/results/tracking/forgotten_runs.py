"""Deletion of one corpus's MLflow runs and registered models."""

from dataclasses import dataclass

from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import is_missing_file, locked_store, tracking_uri


@dataclass(frozen=True, slots=True)
class TrackedCorpus:
    """The runs and models of one corpus in a SQLite store."""

    runs: tuple[str, ...]
    """Ids of its runs."""
    models: tuple[str, ...]
    """Names of registered models that have a version of these runs."""

    def __bool__(self) -> bool:
        return bool(self.runs)


def tracked_corpus(settings: TrackingSettings, dataset: str) -> TrackedCorpus | None:
    """The runs of a corpus; ``None`` if the store is a server, or does not exist."""
    uri = tracking_uri(settings)
    if not uri.startswith("sqlite:") or is_missing_file(uri):
        return None
    with locked_store(settings) as store:
        runs = tuple(str(run.info.run_id) for run in store.runs(f"tags.dataset = '{dataset}'"))
        versions = store.client.search_model_versions()
        models = {str(version.name) for version in versions if version.run_id in runs}
    return TrackedCorpus(runs, tuple(sorted(models)))


def forget_runs(settings: TrackingSettings, tracked: TrackedCorpus) -> None:
    """Delete the runs and models of ``tracked_corpus``. Deleted runs and their files stay until ``mlflow gc``."""
    with locked_store(settings) as store:
        for name in tracked.models:
            store.client.delete_registered_model(name)
        for run in tracked.runs:
            store.client.delete_run(run)
