"""Artifacts of a run in Prefect's UI: the plan, the table of results and the links to MLflow's runs.

Numbers and names of stages only; no text of a corpus, and no output of a stage.
"""

from pathlib import Path
from urllib.parse import quote, urlsplit

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from flows.runs.preparation import Run
from flows.runs.run_progress import SUMMARY_TABLE, is_of_this_run
from tasks.errors import PalimpsestError


def show_plan(run: Run) -> None:
    """A table of the stages with their reasons. Call it in the flow run."""
    rows = [
        {"stage": stage.name, "action": stage.action.value, "reasons": "; ".join(stage.reasons)}
        for stage in run.plan.stages.values()
    ]
    create_table_artifact(table=rows, key="plan", description=run.plan.summary())


def show_results(run: Run) -> None:
    """The table of results and the links to MLflow, if this run made them."""
    if not is_of_this_run(SUMMARY_TABLE, run.plan, run.outcomes):
        return
    create_markdown_artifact(SUMMARY_TABLE.read_text(encoding="utf-8"), key="results", description="The results")
    try:
        links = mlflow_links()
    except PalimpsestError as error:
        links = f"MLflow's runs cannot be listed: {error}"
    create_markdown_artifact(links, key="mlflow-runs", description="The runs in MLflow")


def mlflow_links() -> str:
    """A Markdown list of the runs, with links if MLflow has a server; ``ResourceError`` without a store."""
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
        # Started by 'palimpsest up' with the same store.
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
