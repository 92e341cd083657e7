"""Prefect's servers answer nobody who has no password: no page of another origin, no other user of the machine.

The requests are those with which a page that is open in a browser had 'palimpsest serve' run a command of its own.
"""

import json
from typing import Any

import psutil
import pytest
from prefect_server import _passwords, ask, request
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

EVIL = "https://evil.example"
GUESS = {"Origin": EVIL, "Host": "evil.example", "Authorization": "Basic cGFsaW1wc2VzdDpwYXNzd29yZA=="}
"""What a browser sends for a page whose name was made to lead here, with a password that is tried."""
PREFLIGHT = {
    "Access-Control-Request-Method": "PATCH",
    "Access-Control-Request-Headers": "authorization,content-type,prefect-csrf-token",
}
COMMAND = {"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}


@pytest.mark.parametrize("headers", [{}, GUESS], ids=["another user", "a page that guesses"])
def test_nothing_is_said_or_done_without_the_password(prefect_url: str, headers: dict[str, str]) -> None:
    flow = ask(prefect_url, "/flows/", {"name": "experiment"})["id"]
    deployment: dict[str, Any] = ask(prefect_url, "/deployments/", {"name": "strangers", "flow_id": flow})
    path = f"/deployments/{deployment['id']}"
    for method, asked, body in [
        ("OPTIONS", path, None),
        ("POST", "/flow_runs/filter", {}),
        ("PATCH", path, {"pull_steps": [COMMAND]}),
        ("POST", f"{path}/create_flow_run", {}),
        ("GET", "/csrf-token?client=page", None),
    ]:
        sent = headers | (PREFLIGHT if method == "OPTIONS" else {})
        status, answered, text = request(prefect_url, method, asked, body, sent)
        # A preflight is answered before anybody is asked who they are; its answer forbids the request.
        assert status in ((400, 401) if method == "OPTIONS" else (401, 403)), (method, asked, text)
        assert "access-control-allow-origin" not in answered, (method, asked)
        assert deployment["id"].encode() not in text
    assert ask(prefect_url, path, None)["pull_steps"] == deployment["pull_steps"]
    assert ask(prefect_url, "/flow_runs/filter", {"deployments": {"id": {"any_": [deployment["id"]]}}}) == []


def test_no_socket_stays_open_without_the_password(prefect_url: str) -> None:
    address = prefect_url.replace("http:", "ws:") + "/events/in"
    with connect(address, subprotocols=["prefect"], origin=EVIL) as socket:  # type: ignore[arg-type,list-item]
        socket.send(json.dumps({"type": "auth", "token": "palimpsest:password"}))
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)


def test_the_password_is_long_and_in_no_command(prefect_url: str) -> None:
    assert prefect_url
    secrets = [password.split(":")[1] for password in _passwords.values()]
    assert min(map(len, secrets)) == 32
    commands = " ".join(" ".join(found.info["cmdline"] or []) for found in psutil.process_iter(["cmdline"]))
    assert "prefect" in commands
    assert not any(secret in commands for secret in secrets)
