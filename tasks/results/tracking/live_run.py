"""An MLflow run of a training while it lasts: its curves are visible before the training ends.

``palimpsest publish`` replaces the run by a complete one from the reports. Logging never delays training and never
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

    def write(self, settings: TrackingSettings, tags: dict[str, str], name: str) -> None:
        """Write points into a new run until the block has ended, and close the run."""
        try:
            with locked_store(settings) as store:
                run_id = store.client.create_run(store.experiment_id, tags=tags, run_name=name).info.run_id
            from mlflow.entities import Metric

            ended = False
            while not ended:
                ended = self.ended.wait(FLUSH_SECONDS)
                points = [self._points.popleft() for _ in range(len(self._points))]
                store.log(run_id, [Metric(*point) for point in points])
            store.client.set_terminated(run_id, status=self.status)
        except Exception as error:
            # Training continues without the tracking store: the report is authoritative and has this warning.
            self.warn(f"{type(error).__name__} from the store {shown_uri(tracking_uri(settings))!r}")

    def warn(self, reason: str) -> None:
        """Set the warning, and print it."""
        self.warning = (
            f"the training curve was not shown live ({reason}); 'palimpsest publish' takes it from the report"
        )
        print(f"warning: {self.warning}", file=sys.stderr)


@contextmanager
def live_run(params_path: str | Path, cell: Cell, lineage: Mapping[str, Any]) -> Iterator[LiveRun]:
    """Open the run of a training stage, under the key of ``cell`` and ``lineage`` (see ``run_key.lineage_of``).

    The section ``tracking`` of the file at ``params_path`` names the store. An exception in the block closes the run
    as ``FAILED``. A model that is no cell of the comparison, such as the pretrained one, is not logged.
    """
    run = LiveRun()
    settings: TrackingSettings = read_sections(params_path, ["tracking"])["tracking"]
    if not (settings.live and cell.dataset and cell.method):
        yield run
        return
    arguments = settings, cell_tags(cell, run_key(cell, lineage)), cell.path
    thread = threading.Thread(target=run.write, args=arguments, name="palimpsest-live-run", daemon=True)
    thread.start()
    try:
        yield run
    except BaseException:
        run.status = "FAILED"
        raise
    finally:
        run.ended.set()
        thread.join(_CLOSING_SECONDS)
        if thread.is_alive():
            run.warn("the store did not answer in time")
