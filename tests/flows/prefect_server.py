"""Questions to the API of a Prefect server, without Prefect's own client, and the password that they need."""

import base64
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dashboards.services.passwords import FILE

PASSWORD_VARIABLE = "PREFECT_API_AUTH_STRING"
CLIENT = "tests"
"""Who the token against forged requests is for."""
_passwords: dict[str, str] = {}


def log_in(url: str, password: str) -> None:
    """Ask the server at this address with a user and a password, ``USER:PASSWORD``, from now on."""
    _passwords[urlsplit(url).netloc] = password


def password_in(folder: Path) -> str:
    """What Prefect's server asks for that was started in a checkout."""
    lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)[PASSWORD_VARIABLE]


@contextmanager
def client_of(url: str) -> Iterator[None]:
    """Prefect's own client asks the server at this address inside the block."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: _passwords.get(urlsplit(url).netloc)}):
        yield


def request(
    url: str, method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers with lower-case names, and body of the answer to one request."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    text = None if body is None else json.dumps(body)
    connection.request(method, parts.path + path, text, {"Content-Type": "application/json", **(headers or {})})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def ask(url: str, path: str, question: dict[str, Any] | None) -> Any:
    """The answer to a question that is posted, or to a plain request where there is none."""
    headers = {}
    if password := _passwords.get(urlsplit(url).netloc):
        headers["Authorization"] = f"Basic {base64.b64encode(password.encode()).decode()}"
    if question is not None:
        status, _, token = request(url, "GET", f"/csrf-token?client={CLIENT}", None, headers)
        if status == 200:
            headers |= {"Prefect-Csrf-Client": CLIENT, "Prefect-Csrf-Token": json.loads(token)["token"]}
    status = 503
    deadline = time.monotonic() + 60
    while status == 503 and time.monotonic() < deadline:  # its database is busy for a moment
        status, _, text = request(url, "GET" if question is None else "POST", path, question, headers)
    return json.loads(text) if text else None


def cancel(url: str, flow_run: str) -> None:
    """What the button of Prefect's page does."""
    ask(url, f"/flow_runs/{flow_run}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}})


def log_in_to_page(page: Any, address: str) -> None:
    """Fill in what Prefect's page asks for."""
    page.goto(address)
    page.locator("input[type=password]").fill(_passwords[urlsplit(address).netloc])
    page.get_by_role("button", name="Login").click()
    page.wait_for_url(lambda url: "/login" not in url)
