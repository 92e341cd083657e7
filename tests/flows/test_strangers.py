"""Prefect's servers answer nobody who has no password: no page of another origin, no other user of the machine.

The requests are those with which a page that is open in a browser had 'palimpsest serve' run a command of its own.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from prefect_server import ask, log_in, password_in, request
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from dashboards.services.passwords import PREFECT, make_passwords
from dashboards.services.running_service import start_services, stop_services
from dashboards.services.service import free_port, prefect_service

EVIL = "https://evil.example"
PAGE = {"Origin": EVIL, "Host": "evil.example"}
"""What a browser sends for a page whose name was made to lead here."""
PREFLIGHT = {
    "Access-Control-Request-Method": "PATCH",
    "Access-Control-Request-Headers": "authorization,content-type,prefect-csrf-token",
}
COMMAND = {"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}


@pytest.fixture(scope="module", params=["temporary", "up"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of the server of a run, and of the one that 'palimpsest up' starts."""
    if request.param == "temporary":
        yield request.getfixturevalue("prefect_url")
        return
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(folder / "home"))
        patch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
        for name in ("PREFECT_API_URL", "PREFECT_SERVER_API_AUTH_STRING"):
            patch.delenv(name, raising=False)
        (folder / "home").mkdir()
        server = prefect_service(free_port(), make_passwords(folder)[PREFECT])
        start_services(folder, [server])
        try:
            log_in(server.address, password_in(folder))
            yield f"{server.address}/api"
        finally:
            stop_services(folder, ["prefect"])


@pytest.fixture(scope="module")
def deployment(url: str) -> dict[str, Any]:
    flow = ask(url, "/flows/", {"name": "experiment"})["id"]
    made: dict[str, Any] = ask(url, "/deployments/", {"name": "once", "flow_id": flow})
    return made


def requests_of_a_page(deployment: str) -> list[tuple[str, str, dict[str, Any] | None]]:
    return [
        ("OPTIONS", f"/deployments/{deployment}", None),
        ("POST", "/flow_runs/filter", {}),
        ("PATCH", f"/deployments/{deployment}", {"pull_steps": [COMMAND]}),
        ("POST", f"/deployments/{deployment}/create_flow_run", {}),
        ("GET", f"/deployments/{deployment}", None),
        ("GET", "/csrf-token?client=page", None),
        ("GET", "/admin/settings", None),
    ]


def flow_runs(url: str) -> set[tuple[str, str]]:
    """Those that there are, with their states."""
    return {(run["id"], run["state_type"]) for run in ask(url, "/flow_runs/filter", {})}


@pytest.mark.parametrize(
    "headers",
    [PAGE, {"Origin": EVIL}, {}, {**PAGE, "Authorization": "Basic cGFsaW1wc2VzdDpwYXNzd29yZA=="}],
    ids=["another name", "another origin", "another user", "a guess"],
)
def test_nothing_is_said_or_done_without_the_password(
    url: str, deployment: dict[str, Any], headers: dict[str, str]
) -> None:
    before = flow_runs(url)
    for method, path, body in requests_of_a_page(deployment["id"]):
        sent = headers | (PREFLIGHT if method == "OPTIONS" else {})
        status, answered, text = request(url, method, path, body, sent)
        # A preflight is answered before anybody is asked who they are; its answer forbids the request.
        assert status in ((400, 401) if method == "OPTIONS" else (401, 403)), (method, path, text)
        assert "access-control-allow-origin" not in answered, (method, path)
        assert deployment["id"].encode() not in text
    assert ask(url, f"/deployments/{deployment['id']}", None)["pull_steps"] == deployment["pull_steps"]
    assert flow_runs(url) == before


@pytest.mark.parametrize("path", ["/events/out", "/events/in", "/logs/out"])
def test_no_socket_stays_open_without_the_password(url: str, path: str) -> None:
    address = url.replace("http:", "ws:") + path
    with connect(address, subprotocols=["prefect"], origin=EVIL) as socket:  # type: ignore[arg-type,list-item]
        socket.send(json.dumps({"type": "auth", "token": "palimpsest:password"}))
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)


def test_the_password_is_in_no_command_and_no_log(url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    from prefect_server import _passwords

    secrets = [password.split(":")[1] for password in _passwords.values()]
    assert min(map(len, secrets)) == 32
    commands = " ".join(" ".join(found.info["cmdline"] or []) for found in psutil.process_iter(["cmdline"]))
    assert "prefect" in commands
    logs = [path for path in Path(tmp_path_factory.getbasetemp()).rglob("*.log") if path.is_file()]
    assert logs
    for secret in secrets:
        assert secret not in commands
        assert not any(secret in path.read_text(encoding="utf-8", errors="replace") for path in logs)
