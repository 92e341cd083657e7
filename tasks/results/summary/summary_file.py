"""Read ``summary.json``, whose rows have a cell each; and the view of them in MLflow's table of runs.

The view is at ``…/runs?viewStateShareKey=palimpsest``. Addresses of runs are made here too.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import CorpusError
from tasks.records.cell import Cell
from tasks.results.measure import MLFLOW_TABLE
from tasks.results.measures import measures_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

SUMMARY_FILE = "results/summary.json"
"""Where the rows of an experiment lie."""
_CELL = tuple(Cell.__dataclass_fields__)
_REQUIRED = (*_CELL, "filler_base", "key", "perplexity", "perplexity_known", "signature")


def read_summary(path: str | Path) -> list[dict[str, Any]]:
    """The rows of ``summary.json``.

    Raises ``CorpusError`` where it is missing, is a folder, or is no list of rows with the columns of this version.
    """
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"summary {str(path)!r} does not exist; run 'palimpsest summarise' first") from None
    except IsADirectoryError:
        raise CorpusError(f"summary {str(path)!r} is a folder; give the file, such as its summary.json") from None
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise CorpusError(f"summary {str(path)!r} is no list of rows; run 'palimpsest summarise' again")
    for number, row in enumerate(rows, start=1):
        if missing := [name for name in _REQUIRED if name not in row]:
            raise CorpusError(
                f"summary {str(path)!r} is of another version: row {number} has no {', '.join(map(repr, missing))}; "
                "run 'palimpsest summarise' again"
            )
    return rows


def summarised_cell(row: Mapping[str, Any]) -> Cell:
    """The cell that a row of the summary belongs to."""
    return Cell(**{name: row[name] for name in _CELL})


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


def offer_view(client: "MlflowClient", experiment_id: str) -> None:
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
