"""Settings of the MLflow view: ``tracking`` in ``params.yaml``."""

from typing import Literal

from pydantic import Field

from tasks.parameters.settings_base import Settings


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
    """Whether publishing adds plots, samples of obfuscated text, and the part of ``dvc.lock`` that a run comes from."""
    sample_lines: int = Field(default=10, ge=0)
    """Lines of its obfuscated text that a run shows, the first ones; 0 shows none. No other text is ever shown."""
    models: Literal["none", "champions", "all"] = "champions"
    """Which language models are copied into MLflow: none, the best of each data set, or all. Those that were trained on
    raw text are never copied."""
