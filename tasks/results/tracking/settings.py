"""Settings of the MLflow view: ``tracking`` in ``params.yaml``."""

from pydantic import Field

from tasks.settings.base import Settings


class TrackingSettings(Settings):
    """Settings of the MLflow store; they never change a number, so no stage depends on them."""

    uri: str = "sqlite:///mlflow.db"
    """MLflow tracking URI; the environment variable ``MLFLOW_TRACKING_URI`` takes precedence."""
    experiment: str = "palimpsest"
    """Name of the MLflow experiment."""
    live: bool = True
    """Whether training curves are logged while training runs."""
    log_every_steps: int = Field(default=10, ge=1)
    """Optimiser steps between two points of a training curve."""
