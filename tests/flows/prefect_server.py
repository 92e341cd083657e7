"""Questions to the API of a Prefect server, without Prefect's own client, and the password that they need."""

import base64
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from dashboards.services.services import FILE

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


def request(
    url: str, method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers with lower-case names, and body of the answer to one request."""
    answer = httpx.request(method, url + path, json=body, headers=headers, timeout=60, trust_env=False)
    return answer.status_code, dict(answer.headers), answer.content


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
