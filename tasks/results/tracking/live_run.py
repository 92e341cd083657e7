"""A cell's MLflow run during training: its curves are visible before the training ends.

``palimpsest publish`` completes the same run later: both find it by its key. Logging never delays training and never
makes it fail: a thread opens the store and writes the new points every two seconds. Numbers only, never text.
"""

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.parameters.parameter_file import read_sections
from tasks.records.cell import Cell
from tasks.records.run_key import run_key
from tasks.results.tracking.run_record import CURVES
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import cell_tags, locked_store, shown_uri, tracking_uri

FLUSH_SECONDS = 2.0
_CLOSING_SECONDS = 180.0


class LiveRun:
    """The log of a training loop; made by ``live_run``."""

    def __init__(self) -> None:
        self.warning: str | None = None
        """One sentence for the report if the curve could not be logged; set when the block has ended."""
        self.status = "FINISHED"
        self.ended = threading.Event()
        self._points: deque[tuple[str, float, int, int]] = deque()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log one point of each curve, such as ``{"train_loss": 5.1}``; returns at once.

        Values that are no finite numbers are left out: the report has them.
        """
        now = int(time.time() * 1000)
        self._points.extend((name, float(value), now, step) for name, value in values.items() if math.isfinite(value))

    def warn(self, reason: str) -> None:
        """Set the warning."""
        self.warning = (
            f"the training curve is not in MLflow yet ({reason}); 'palimpsest publish' takes it from the report"
        )

    def write(self, settings: TrackingSettings, cell: Cell, key: str) -> None:
        """Write points into the run of the key until the block has ended, and close the run."""
        try:
            with locked_store(settings) as store:
                from mlflow.entities import Metric

                runs = store.runs_of_key(key)
                made = store.client.create_run
                run = runs[0] if runs else made(store.experiment_id, tags=cell_tags(cell, key), run_name=cell.path)
            run_id, known = run.info.run_id, {*store.curves(run, CURVES)}
            if run.info.status != "RUNNING":
                store.client.update_run(run_id, status="RUNNING")
            ended = False
            while not ended:
                ended = self.ended.wait(FLUSH_SECONDS)
                points = [self._points.popleft() for _ in range(len(self._points))]
                new = [Metric(*point) for point in points if (point[0], point[3]) not in known]
                store.log(run_id, new)
                known |= {(metric.key, metric.step) for metric in new}
            store.client.set_terminated(run_id, status=self.status)
        except Exception as error:
            # Training continues without the tracking store: the report is authoritative and has this warning.
            self.warn(f"{type(error).__name__} from the store {shown_uri(tracking_uri(settings))!r}")


@contextmanager
def live_run(params_path: str | Path, cell: Cell, lineage: Mapping[str, Any]) -> Iterator[LiveRun]:
    """Open the run of a training stage, under the key of ``cell`` and ``lineage`` (see ``run_key.lineage_of``).

    The section ``tracking`` of the file at ``params_path`` names the store. When the block ends, ``warning`` of the run
    is ``None`` or one sentence for the report, which is also printed. A run of the same key continues: its steps are
    not logged again. An exception in the block closes the run as ``FAILED``, an interruption as ``KILLED``. A model
    that is no cell of the comparison, such as the pretrained one, is not logged.
    """
    run = LiveRun()
    if not (cell.dataset and cell.method):
        yield run
        return
    settings: TrackingSettings = read_sections(params_path, ["tracking"])["tracking"]
    arguments = settings, cell, run_key(cell, lineage)
    thread = threading.Thread(target=run.write, args=arguments, name="palimpsest-live-run", daemon=True)
    if settings.live:
        thread.start()
    try:
        yield run
    except BaseException as error:
        run.status = "FAILED" if isinstance(error, Exception) else "KILLED"
        raise
    finally:
        run.ended.set()
        if settings.live:
            thread.join(_CLOSING_SECONDS)
        else:
            run.warn("tracking.live is false")
        if thread.is_alive():
            run.warn("the store did not answer in time")
        if run.warning:
            print(f"warning: {run.warning}", file=sys.stderr)
