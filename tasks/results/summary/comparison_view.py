"""Addresses of MLflow's pages, and the columns of its table of runs under ``…/runs?viewStateShareKey=palimpsest``."""

import json
from typing import Any

from tasks.results.measures import MLFLOW_TABLE, measures_of

VIEW = "palimpsest"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
"""Where MLflow's page keeps a view that is shared."""
RUNS_NOT_TRACES = "workflowType=machine_learning"
"""Part of an address: without it MLflow 3.17 opens every experiment as one of chat traces, whatever its tag says."""
_KIND_TAG = "mlflow.experimentKind"
_TAGS = ("group", "dataset", "technique", "method", "filler", "seed")


def run_address(server: str, experiment_id: str, run_id: str) -> str:
    """Address of a run in MLflow's own interface; ``server`` is an address such as ``http://127.0.0.1:5000``."""
    return f"{server.rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}?{RUNS_NOT_TRACES}"


def offer_view(client: Any, experiment_id: str) -> None:
    """Give the experiment the view, sorted by the first measure; mark it as one of trained models, not of traces."""
    first, *others = (measure.name for measure in measures_of(MLFLOW_TABLE))
    metrics = [first, *(f"{first}_{end}" for end in ("low", "high", "mean", "deviation")), *others]
    columns = [*(f"tags.`{name}`" for name in _TAGS), *(f"metrics.`{name}`" for name in metrics)]
    view = {"selectedColumns": columns, "orderByKey": f"metrics.`{first}`", "orderByAsc": True}
    wanted = {VIEW_TAG: json.dumps(view), _KIND_TAG: "custom_model_development"}
    from mlflow.exceptions import MlflowException

    present = client.get_experiment(experiment_id).tags
    for name, value in wanted.items():
        if present.get(name) == value:
            continue
        try:
            client.set_experiment_tag(experiment_id, name, value)
        except MlflowException:
            # Through a server another publisher may have written the same at the same moment.
            if client.get_experiment(experiment_id).tags.get(name) != value:
                raise
