"""A cell's MLflow run while its model trains: the curve is there to be looked at before training ends.

The run is the one that ``palimpsest publish`` completes later: both find it by its key. Logging never holds up
training and never makes it fail. A thread of its own opens the store (importing MLflow takes about a second of
processor time) and writes what has gathered every two seconds, in one transaction. Numbers only, never text. MLflow's
own sampler adds the load of the machine, from a thread of its own too.
"""

import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.parameters.parameter_file import read_sections
from tasks.records.cell import Cell
from tasks.records.run_key import run_key
from tasks.results.tracking.curve import logged_points
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import TrackingStore, locked_store, shown_uri, tracking_uri

FLUSH_SECONDS = 2.0
_CLOSING_SECONDS = 60.0
_BATCH = 1000
"""Most metrics that MLflow takes in one call."""

Point = tuple[str, float, int, int]
"""Name, value, step, time in milliseconds."""


class LiveRun:
    """What a training loop logs to; made by ``live_run``."""

    def __init__(self, settings: TrackingSettings | None, cell: Cell, key: str, warning: str | None) -> None:
        self.warning = warning
        """One sentence for the report where the curve could not be logged; known when the block has ended."""
        self.key = key
        self._cell = cell
        self._settings = settings
        self._points: list[Point] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._status = "FINISHED"
        self._thread = threading.Thread(target=self._write, name="palimpsest-live-run", daemon=True)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log one point of each curve, such as ``{"train_loss": 5.1}``, in units of its name; returns at once.

        Values that are no finite numbers are left out: the report says what they were.
        """
        if self._settings is None:
            return
        now = int(time.time() * 1000)
        points = [(name, float(value), step, now) for name, value in values.items() if math.isfinite(value)]
        with self._lock:
            self._points += points

    def _start(self) -> None:
        if self._settings is not None:
            self._thread.start()

    def _end(self, status: str) -> None:
        if self._settings is None:
            return
        self._status = status
        self._ended.set()
        self._thread.join(_CLOSING_SECONDS)
        if self._thread.is_alive():
            self.warning = self._describe("the store did not answer in time")

    def _describe(self, reason: str) -> str:
        return f"the training curve is not in MLflow yet ({reason}); 'palimpsest publish' takes it from the report"

    def _write(self) -> None:
        """The thread: open the store, write until the end, close the run."""
        assert self._settings is not None
        try:
            with locked_store(self._settings) as store:
                run, made = store.find_or_make(self._cell, self.key)
            run_id = run.info.run_id
            known = set() if made else set(logged_points(store.client, run))
            if not made and run.info.status != "RUNNING":
                store.client.update_run(run_id, status="RUNNING")
            with _system_metrics(self._settings, store.uri, run_id):
                while not self._ended.wait(FLUSH_SECONDS):
                    self._flush(store, run_id, known)
            self._flush(store, run_id, known)
            store.client.set_terminated(run_id, status=self._status)
        except Exception as error:
            # Training goes on whatever happens to the tracking store: the report is the truth and carries this.
            place = shown_uri(tracking_uri(self._settings))
            self.warning = self._describe(f"{type(error).__name__} from the store {place!r}")

    def _flush(self, store: TrackingStore, run_id: str, known: set[tuple[str, int]]) -> None:
        from mlflow.entities import Metric

        with self._lock:
            points, self._points = self._points, []
        new = [point for point in points if (point[0], point[2]) not in known]
        for start in range(0, len(new), _BATCH):
            metrics = [Metric(name, value, at, step) for name, value, step, at in new[start : start + _BATCH]]
            store.client.log_batch(run_id, metrics=metrics)
        known.update((name, step) for name, _, step, _ in new)


@contextmanager
def live_run(params_path: str | Path | None, cell: Cell, lineage: Mapping[str, Any]) -> Iterator[LiveRun]:
    """The run of a training stage, under the key of ``cell`` and ``lineage`` (see ``run_key.lineage_of``).

    ``params_path`` names the file whose section ``tracking`` says where the store is; without one, nothing is logged.
    When the block ends, ``warning`` of the run is ``None`` or one sentence for the report, which is also printed. A run
    of the same key that was there before goes on: steps that it has are not logged again. An exception in the block
    closes the run as ``FAILED``, an interruption as ``KILLED``.
    """
    settings: TrackingSettings | None = None
    warning = None
    if params_path is not None and cell.dataset and cell.method:
        settings = read_sections(params_path, ["tracking"])["tracking"]
        if not settings.live:
            settings = None
            warning = "the training curve is not logged live (tracking.live is false); 'palimpsest publish' logs it"
    run = LiveRun(settings, cell, run_key(cell, lineage), warning)
    run._start()
    try:
        yield run
    except BaseException as error:
        run._end("FAILED" if isinstance(error, Exception) else "KILLED")
        raise
    run._end("FINISHED")
    if run.warning:
        print(f"warning: {run.warning}", file=sys.stderr)


@contextmanager
def _system_metrics(settings: TrackingSettings, uri: str, run_id: str) -> Iterator[None]:
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
