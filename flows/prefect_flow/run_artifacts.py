"""What a run shows in Prefect's UI: the plan, how far it is, the table of results and where MLflow has each run.

Numbers and names of stages only; no text of a corpus, and nothing of what a stage printed.
"""

import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from flows.runs.run_progress import SUMMARY_TABLE, TimeLeft, is_of_this_run, load_durations
from flows.runs.session import Session
from flows.stages.executor import Outcome, State
from tasks.errors import PalimpsestError

PROGRESS_SECONDS = 10.0
"""At most this often the progress is written; a short stage more or less is no news."""


class RunArtifacts:
    """The artifacts of one flow run; made inside it, in the folder of the project."""

    def __init__(self, session: Session) -> None:
        """Show the plan and a progress of 0 %."""
        self._session = session
        self._lock = threading.Lock()
        self._time_left = TimeLeft(session.plan.graph, session.parallel_stages, load_durations(Path()))
        self._known: set[str] = set()
        self._started = time.monotonic()
        self._written = self._started
        rows = [
            {"stage": stage.name, "action": stage.action.value, "reasons": "; ".join(stage.reasons)}
            for stage in session.plan.stages.values()
        ]
        create_table_artifact(table=rows, key="plan", description=session.plan.summary())
        self._progress: Any = create_progress_artifact(0.0, key="progress", description=self._description())

    def show_progress(self) -> None:
        """Bring the progress up to date: stages done, those that run, and the share of the expected time."""
        with self._lock:
            now = time.monotonic()
            if now - self._written < PROGRESS_SECONDS:
                return
            self._written = now
            self._write(now)

    def show_results(self) -> None:
        """The final progress, the table of results and the links to MLflow, as far as this run made them."""
        with self._lock:
            self._write(time.monotonic())
        if not is_of_this_run(SUMMARY_TABLE, self._session.plan, self._session.outcomes):
            return
        create_markdown_artifact(SUMMARY_TABLE.read_text(encoding="utf-8"), key="results", description="The results")
        try:
            links = mlflow_links()
        except PalimpsestError as error:
            links = f"MLflow's runs cannot be listed: {error}"
        create_markdown_artifact(links, key="mlflow-runs", description="The runs in MLflow")

    def _write(self, now: float) -> None:
        for name, outcome in dict(self._session.outcomes).items():
            if name not in self._known:
                self._known.add(name)
                self._time_left.end(outcome)
        total = len(self._session.plan.stages)
        left = self._time_left.seconds(now)
        spent = now - self._started
        share = spent / (spent + left) if left else len(self._known) / max(1, total)
        update_progress_artifact(self._progress, 100 * share, self._description())

    def _description(self) -> str:
        outcomes: dict[str, Outcome] = dict(self._session.outcomes)
        states = [outcome.state for outcome in outcomes.values()]
        counts = ", ".join(f"{states.count(state)} {state.value}" for state in State if state in states)
        return f"{len(outcomes)} of {len(self._session.plan.stages)} stages" + (f": {counts}" if counts else "")


def mlflow_links() -> str:
    """A Markdown list of the current runs, each a link where MLflow has a server; ``ResourceError`` without a store."""
    from dashboards.services.running_service import running_services
    from tasks.parameters.parameter_file import read_parameters
    from tasks.results.summary.summary_file import run_address
    from tasks.results.tracking.tracking_store import CELL_TAG, CURRENT_TAG, check_exists, locked_store, shown_uri

    settings = read_parameters().tracking
    check_exists(settings)
    with locked_store(settings) as store:
        runs = store.runs(f"tags.`{CURRENT_TAG}` = 'true'")
        uri = shown_uri(store.uri)
    server = running_services(Path()).get("mlflow")
    if server is not None and urlsplit(uri).scheme not in ("http", "https"):
        # Started by 'palimpsest up' over the very store.
        uri = server.address
    lines = []
    for run in runs:
        name = run.data.tags.get(CELL_TAG, run.info.run_name)
        if urlsplit(uri).scheme in ("http", "https"):
            lines.append(f"- [{name}]({run_address(uri, run.info.experiment_id, run.info.run_id)})")
        else:
            lines.append(f"- {name}: run `{run.info.run_id}`")
    if lines and urlsplit(uri).scheme not in ("http", "https"):
        lines.append(f"\nThe store is the file `{quote(uri, safe=':/.')}`; `palimpsest up mlflow` shows it.")
    return "\n".join(lines) or "MLflow has no run yet."
