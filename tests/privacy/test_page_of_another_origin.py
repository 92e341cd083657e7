"""A page of another origin, open in a real Chromium, gets nothing from our servers and changes nothing in them.

The page is what an attacker can write: it asks with and without credentials, without reading the answer, by a form and
by web sockets. A person is logged in to Prefect in another tab of the same browser.
"""

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from prefect_server import ask, log_in, log_in_to_page, password_in, request
from system_browser import system_chromium

from dashboards.services.passwords import MLFLOW, make_passwords
from dashboards.services.running_service import start_services, stop_services
from dashboards.services.service import TITLES, free_port
from dashboards.services.up_command import table
from tasks.results.tracking.settings import TrackingSettings

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = system_chromium()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
NAMES = "--host-resolver-rules=MAP evil.example 127.0.0.1"
ATTACK = """async ([address, method, path, body]) => {
  const found = [];
  for (const mode of ['cors', 'no-cors'])
    for (const credentials of ['omit', 'include'])
      for (const type of ['application/json', 'text/plain']) {
        if (body === null && type == 'text/plain') continue;
        const headers = body === null ? {} : {'Content-Type': type};
        try {
          const answer = await fetch(address + path, {method, mode, credentials, headers, body});
          found.push(mode + ' ' + answer.type + ' ' + (await answer.text()));
        } catch (error) { found.push(null); }
      }
  return found;
}"""
SOCKET = """(address) => new Promise(done => {
  const socket = new WebSocket(address);
  socket.onmessage = message => done('told ' + message.data);
  socket.onopen = () => socket.send('{"type": "auth", "token": null}');
  socket.onclose = () => done(null);
  socket.onerror = () => done(null);
})"""
FORM = """([address, path]) => {
  const form = document.createElement('form');
  form.method = 'post'; form.enctype = 'text/plain'; form.action = address + path; form.target = 'result';
  form.innerHTML = `<input name='{"name": "made by a page", "x": "' value='"}'>`;
  document.body.innerHTML = '<iframe name=result></iframe>'; document.body.append(form);
  return new Promise(done => {
    setTimeout(() => { document.querySelector('iframe').onload = () => done(true); form.submit(); }, 500);
  });
}"""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The servers as 'palimpsest up' starts them."""
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(folder / "home"))
        for name in ("PREFECT_API_URL", "PREFECT_SERVER_API_AUTH_STRING", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        for name in TITLES:
            patch.setenv(f"PALIMPSEST_{name.upper()}_PORT", str(free_port()))
        (folder / "home").mkdir()
        patch.chdir(folder)
        services = table(folder, TrackingSettings())
        start_services(folder, services)
        try:
            found = {service.name: service.address for service in services}
            password = f"admin:{make_passwords(folder)[MLFLOW]}"
            found["mlflow login"] = f"Basic {base64.b64encode(password.encode()).decode()}"
            log_in(found["prefect"], password_in(folder))
            yield found
        finally:
            stop_services(folder, TITLES)


@pytest.fixture(scope="module")
def browser(addresses: dict[str, str]) -> Iterator[Any]:
    """One in whose first tab somebody has logged in to Prefect; he sees his runs there."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", NAMES])
        context = browser.new_context()
        context.set_default_timeout(120_000)
        page = context.new_page()
        log_in_to_page(page, addresses["prefect"])
        page.goto(f"{addresses['prefect']}/flows")
        page.get_by_text("experiment", exact=True).first.wait_for()
        yield context
        browser.close()


@pytest.fixture(scope="module")
def deployment(addresses: dict[str, str]) -> dict[str, Any]:
    api = f"{addresses['prefect']}/api"
    flow = ask(api, "/flows/", {"name": "experiment"})["id"]
    made: dict[str, Any] = ask(api, "/deployments/", {"name": "once", "flow_id": flow})
    return made


@pytest.fixture
def page(deployment: dict[str, Any], browser: Any) -> Iterator[Any]:
    """A tab with a page of another origin. MLflow trusts pages of every port of this machine, so it has a name."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title><body>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        opened = browser.new_page()
        opened.goto(f"http://evil.example:{server.server_port}/")
        yield opened
        opened.close()
        server.shutdown()


def told(answers: list[str | None]) -> list[str]:
    """What the page could read."""
    return [answer for answer in answers if answer is not None and answer not in ("no-cors opaque ",)]


def test_prefect_tells_it_nothing_and_does_nothing(
    page: Any, addresses: dict[str, str], deployment: dict[str, Any]
) -> None:
    address, number = addresses["prefect"], deployment["id"]
    command = {"pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}]}
    for method, path, body in (
        ("GET", f"/api/deployments/{number}", None),
        ("GET", "/api/csrf-token?client=page", None),
        ("POST", "/api/flow_runs/filter", "{}"),
        ("PATCH", f"/api/deployments/{number}", json.dumps(command)),
        ("POST", f"/api/deployments/{number}/create_flow_run", "{}"),
    ):
        assert told(page.evaluate(ATTACK, [address, method, path, body])) == [], path
    page.evaluate(FORM, [address, f"/api/deployments/{number}/create_flow_run"])
    assert page.evaluate(SOCKET, f"{address.replace('http', 'ws')}/api/events/out") is None
    api = f"{address}/api"
    assert ask(api, f"/deployments/{number}", None)["pull_steps"] == deployment["pull_steps"]
    assert ask(api, "/flow_runs/filter", {}) == []


def test_mlflow_tells_it_nothing_and_does_nothing(page: Any, addresses: dict[str, str]) -> None:
    address = addresses["mlflow"]
    search, create = "/api/2.0/mlflow/experiments/search", "/api/2.0/mlflow/experiments/create"
    login = {"Authorization": addresses["mlflow login"]}
    before = request(address, "POST", search, {"max_results": 100}, login)
    assert before[0] == 200
    for method, path, body in (
        ("GET", f"{search}?max_results=100", None),
        ("POST", search, '{"max_results": 100}'),
        ("POST", create, '{"name": "made by a page"}'),
        ("POST", f"/ajax-{create[1:]}", '{"name": "made by a page"}'),
    ):
        assert told(page.evaluate(ATTACK, [address, method, path, body])) == [], path
    page.evaluate(FORM, [address, create])
    assert request(address, "POST", search, {"max_results": 100}, login)[2] == before[2]


def test_a_name_that_was_made_to_lead_here_is_refused(addresses: dict[str, str]) -> None:
    """As for a page whose name its owner has pointed at this machine, so that its origin is the server's own."""
    port = addresses["mlflow"].rpartition(":")[2]
    page = {
        "Host": f"evil.example:{port}",
        "Origin": f"http://evil.example:{port}",
        "Authorization": addresses["mlflow login"],
    }
    assert request(addresses["mlflow"], "POST", "/api/2.0/mlflow/experiments/search", {}, page)[0] == 403
