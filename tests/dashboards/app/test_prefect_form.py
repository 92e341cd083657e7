"""A run of the experiment started with a click: Prefect's own form, filled in and submitted in a real Chromium."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# The small project is shared with the tests of the flows.
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "flows"))

from prefect_server import ask, log_in, log_in_to_page, password_in
from scratch_project import CHECKOUT, GRAPH, Project, make_project

from dashboards.screenshots import chromium as system_chromium
from dashboards.services.starting import start_services, stop_services
from flows.serve_command import FILE
from tasks.parameters.parameter_file import read_parameters

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = system_chromium()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
PATIENCE = 120_000
"""Milliseconds: a test machine may be busy."""
CUT = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
PARAMETERS = ["stages", "only", "overrides"]
"""Those whose values are lists, in the order in which the form shows them."""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    """The small project, everything up to date, with a server of its own and its form on offer."""
    for name in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)
    variables = {
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(tmp_path / "dvc"),
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_RUNNER_POLL_FREQUENCY": "1",
        "DO_NOT_TRACK": "1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    made = make_project(tmp_path / "a project", GRAPH)
    made.dvc("repro")
    made.write(FILE, (CHECKOUT / FILE).read_text(encoding="utf-8"))
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", "add", "--all"], cwd=made.folder, check=True)
    subprocess.run(["git", *identity, "commit", "--quiet", "-m", "start"], cwd=made.folder, check=True)
    return made


@pytest.fixture
def address(project) -> Iterator[str]:
    """The address of Prefect's interface, where 'palimpsest serve once' offers the form."""
    ports = {"prefect": free_port()}
    (server,) = start_services(
        project.folder, ["prefect"], ports, read_parameters(project.folder / "params.yaml").tracking
    )
    log_in(server.address, password_in(project.folder))
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PREFECT_API_URL": f"{server.address}/api"}
    with open(project.folder / ".palimpsest" / "serve.log", "w", encoding="utf-8") as log:
        serving = subprocess.Popen(
            [sys.executable, "-m", "tasks.cli", "serve", "once"],
            cwd=project.folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            yield server.address
        finally:
            serving.send_signal(signal.SIGTERM)
            serving.wait(60)
            stop_services(project.folder, ["prefect"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(found: Callable[[], Any]) -> Any:
    """What a question is answered with, as soon as there is an answer."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not (answer := found()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return answer


def test_the_form_checks_what_is_written_and_starts_a_run(project, address):
    api = f"{address}/api"
    wait_for(lambda: ask(api, "/deployments/filter", {}))
    before = project.read("params.yaml")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", CUT])
        page = browser.new_page(viewport={"width": 1300, "height": 1500})
        page.set_default_timeout(PATIENCE)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))

        log_in_to_page(page, address)
        page.goto(f"{address}/deployments")
        page.get_by_role("link", name="once", exact=True).first.click()
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text("Custom run").click()
        page.get_by_text("Recorded as a DVC experiment").wait_for()

        # What is no choice is refused beside its field, and nothing is started.
        add = page.get_by_role("button", name="Add item")
        add.nth(PARAMETERS.index("only")).click()
        written = page.locator("form textarea")
        written.fill("method top_k")
        page.get_by_role("button", name="Submit").click()
        page.get_by_text("'method top_k' does not match").wait_for()
        assert ask(api, "/flow_runs/count", {}) == 0

        written.fill("method=top_k")
        add.nth(PARAMETERS.index("overrides")).click()
        written.nth(1).fill("filling.top_k.k=20")
        page.get_by_role("button", name="Submit").click()
        (started,) = wait_for(lambda: ask(api, "/flow_runs/filter", {}))
        page.goto(f"{address}/runs/flow-run/{started['id']}")
        page.get_by_text("Completed", exact=True).first.wait_for()
        browser.close()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []

    ended = ask(api, f"/flow_runs/{started['id']}", None)
    assert ended["state"]["type"] == "COMPLETED"
    assert ended["parameters"]["only"] == ["method=top_k"]
    assert ended["parameters"]["overrides"] == ["filling.top_k.k=20"]
    tasks = ask(api, "/task_runs/filter", {"flow_runs": {"id": {"any_": [started["id"]]}}})
    assert {task["name"] for task in tasks} == {"fill@list-top_k", "fill@tagger-top_k"}
    assert {task["state"]["type"] for task in tasks} == {"COMPLETED"}
    # As reproducible as a commit: the file is as before, and the run is recorded.
    assert project.read("params.yaml") == before
    recorded = subprocess.run(
        ["git", "for-each-ref", "--format=%(objectname)", "refs/exps"],
        cwd=project.folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    shown = subprocess.run(
        ["git", "show", f"{recorded[0]}:params.yaml"], cwd=project.folder, check=True, capture_output=True, text=True
    ).stdout
    assert "top_k: {kind: top_k, k: 20" in shown
