"""The machine's load while a model trains: processor, memory, disk, network and GPUs, by MLflow's own sampler."""

from collections.abc import Iterator
from contextlib import contextmanager

from tasks.results.tracking.settings import TrackingSettings


@contextmanager
def system_metrics(settings: TrackingSettings, uri: str, run_id: str) -> Iterator[None]:
    """Log the load of the whole machine to a run every ``settings.system_metrics_seconds`` seconds, from a thread.

    Units stand in MLflow's names (``system/cpu_utilization_percentage``, ``system/system_memory_usage_megabytes``). A
    run that goes on continues where its samples ended. Training is never held up: what the sampler cannot measure or
    log is left out.
    """
    if not settings.system_metrics:
        yield
        return
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    monitor = SystemMetricsMonitor(
        run_id, sampling_interval=settings.system_metrics_seconds, resume_logging=True, tracking_uri=uri
    )
    monitor.start()
    try:
        yield
    finally:
        monitor.finish()
