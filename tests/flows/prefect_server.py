"""Questions to the API of a Prefect server, without Prefect's own client."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit


def ask(url: str, path: str, question: dict[str, Any] | None) -> Any:
    """The answer to a question that is posted, or to a plain request where there is none."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    method, body = ("GET", None) if question is None else ("POST", json.dumps(question))
    connection.request(method, parts.path + path, body, {"Content-Type": "application/json"})
    text = connection.getresponse().read()
    connection.close()
    return json.loads(text) if text else None


def cancel(url: str, flow_run: str) -> None:
    """What the button of Prefect's page does."""
    ask(url, f"/flow_runs/{flow_run}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}})
