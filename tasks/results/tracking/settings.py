"""Settings of the MLflow view: ``tracking`` in ``params.yaml``."""

from pydantic import Field

from tasks.settings.base import Settings


class TrackingSettings(Settings):
    """Where MLflow runs go; never changes a number, so no stage depends on it."""

    uri: str = "sqlite:///mlflow.db"
    """MLflow tracking URI; the environment variable ``MLFLOW_TRACKING_URI`` takes precedence."""
    experiment: str = "palimpsest"
    """Name of the MLflow experiment."""
    live: bool = True
    """Whether training curves are logged while training runs."""
    log_every_steps: int = Field(default=10, ge=1)
    """Optimiser steps between two points of a training curve."""
    system_metrics: bool = True
    """Whether MLflow's own sampler logs the machine's load (processor, memory, GPU, network) while training runs."""
    system_metrics_seconds: float = Field(default=5.0, gt=0)
    """Seconds between two samples of the machine's load."""
    artifacts: bool = True
    """Whether publishing adds plots, and made-up sentences as a cell masks and fills them."""
