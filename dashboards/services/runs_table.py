"""Where MLflow's page shows the runs of the experiment as a table that compares them."""

import http.client
import json
from urllib.parse import quote, urlsplit

from tasks.results.summary.comparison_view import RUNS_NOT_TRACES, VIEW, VIEW_TAG

_SECONDS = 5


def runs_table(address: str, experiment: str) -> str | None:
    """The address of the table, with the columns that compare where publishing has offered them.

    ``None`` where the server does not say: it asks for a password, or has no such experiment yet.
    """
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request(
            "GET", f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={quote(experiment, safe='')}"
        )
        response = connection.getresponse()
        if response.status != 200:
            return None
        found = json.loads(response.read())["experiment"]
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    finally:
        connection.close()
    offered = any(tag["key"] == VIEW_TAG for tag in found.get("tags", []))
    view = f"&viewStateShareKey={VIEW}" if offered else ""
    return f"{address}/#/experiments/{found['experiment_id']}/runs?{RUNS_NOT_TRACES}{view}"
