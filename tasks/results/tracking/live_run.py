"""A cell's MLflow run during training: its curves are visible before the training ends.

``palimpsest publish`` completes the same run later: both find it by its key. Logging never delays training and never
makes it fail: a thread opens the store and writes the new points every two seconds. Numbers only, never text.
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
from tasks.results.tracking.tracking_store import TrackingStore, cell_tags, locked_store, shown_uri, tracking_uri

FLUSH_SECONDS = 2.0
_CLOSING_SECONDS = 180.0
_BATCH = 1000
"""Most metrics that MLflow takes in one call."""


class LiveRun:
    """The log of a training loop; made by ``live_run``."""

    def __init__(self, settings: TrackingSettings | None, cell: Cell, key: str) -> None:
        self.warning: str | None = None
        """One sentence for the report if the curve could not be logged; set when the block has ended."""
        self._settings, self._cell, self._key = settings, cell, key
        self._points: list[tuple[str, float, int, int]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._status = "FINISHED"
        self._thread = threading.Thread(target=self._write, name="palimpsest-live-run", daemon=True)
        if settings is not None and settings.live:
            self._thread.start()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log one point of each curve, such as ``{"train_loss": 5.1}``; returns at once.

        Values that are no finite numbers are left out: the report has them.
        """
        now = int(time.time() * 1000)
        with self._lock:
            self._points += [(name, float(value), now, step) for name, value in values.items() if math.isfinite(value)]

    def end(self, status: str) -> None:
        """Write the rest and close the run."""
        if self._settings is None:
            return
        if not self._settings.live:
            self._warn("tracking.live is false")
            return
        self._status = status
        self._ended.set()
        self._thread.join(_CLOSING_SECONDS)
        if self._thread.is_alive():
            self._warn("the store did not answer in time")

    def _warn(self, reason: str) -> None:
        self.warning = (
            f"the training curve is not in MLflow yet ({reason}); 'palimpsest publish' takes it from the report"
        )

    def _write(self) -> None:
        assert self._settings is not None
        try:
            with locked_store(self._settings) as store:
                runs = store.runs_of_key(self._key)
                run = runs[0] if runs else store.make_run(self._key, cell_tags(self._cell, self._key))
            known = set(logged_points(store.client, run))
            if run.info.status != "RUNNING":
                store.client.update_run(run.info.run_id, status="RUNNING")
            while not self._ended.wait(FLUSH_SECONDS):
                self._flush(store, run.info.run_id, known)
            self._flush(store, run.info.run_id, known)
            store.client.set_terminated(run.info.run_id, status=self._status)
        except Exception as error:
            # Training continues without the tracking store: the report is authoritative and has this warning.
            self._warn(f"{type(error).__name__} from the store {shown_uri(tracking_uri(self._settings))!r}")

    def _flush(self, store: TrackingStore, run_id: str, known: set[tuple[str, int]]) -> None:
        from mlflow.entities import Metric

        with self._lock:
            points, self._points = self._points, []
        new = [Metric(*point) for point in points if (point[0], point[3]) not in known]
        for start in range(0, len(new), _BATCH):
            store.client.log_batch(run_id, metrics=new[start : start + _BATCH])
        known.update((metric.key, metric.step) for metric in new)


@contextmanager
def live_run(params_path: str | Path, cell: Cell, lineage: Mapping[str, Any]) -> Iterator[LiveRun]:
    """Open the run of a training stage, under the key of ``cell`` and ``lineage`` (see ``run_key.lineage_of``).

    The section ``tracking`` of the file at ``params_path`` names the store. When the block ends, ``warning`` of the run
    is ``None`` or one sentence for the report, which is also printed. A run of the same key continues: its steps are
    not logged again. An exception in the block closes the run as ``FAILED``, an interruption as ``KILLED``. A model
    that is no cell of the comparison, such as the pretrained one, is not logged.
    """
    settings = read_sections(params_path, ["tracking"])["tracking"] if cell.dataset and cell.method else None
    run = LiveRun(settings, cell, run_key(cell, lineage))
    try:
        yield run
    except BaseException as error:
        run.end("FAILED" if isinstance(error, Exception) else "KILLED")
        raise
    run.end("FINISHED")
    if run.warning:
        print(f"warning: {run.warning}", file=sys.stderr)
