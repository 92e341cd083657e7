"""A page of another origin, open in a real Chromium, gets nothing from our servers and changes nothing in them.

The page is what an attacker can write: it asks with and without credentials, without reading the answer, by a form and
by web sockets. A person is logged in to Prefect in another tab of the same browser.
"""

import base64
import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from prefect_server import ask, log_in, log_in_to_page, password_in, request
from system_browser import system_chromium

from dashboards.services.services import KINDS, MLFLOW, free_port, make_passwords, start_services, stop_services, table

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
def addresses(tmp_path_factory):
    """The servers as 'palimpsest up' starts them."""
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(folder / "home"))
        for name in ("PREFECT_API_URL", "PREFECT_SERVER_API_AUTH_STRING", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        for name in KINDS:
            patch.setenv(f"PALIMPSEST_{name.upper()}_PORT", str(free_port()))
        (folder / "home").mkdir()
        patch.chdir(folder)
        services = table(folder, "sqlite:///mlflow.db")
        start_services(folder, services)
        try:
            found = {service.name: service.address for service in services}
            password = f"admin:{make_passwords(folder)[MLFLOW]}"
            found["mlflow login"] = f"Basic {base64.b64encode(password.encode()).decode()}"
            log_in(found["prefect"], password_in(folder))
            yield found
        finally:
            stop_services(folder, KINDS)


@pytest.fixture(scope="module")
def deployment(addresses):
    api = f"{addresses['prefect']}/api"
    flow = ask(api, "/flows/", {"name": "experiment"})["id"]
    return ask(api, "/deployments/", {"name": "once", "flow_id": flow})


@pytest.fixture(scope="module")
def page(addresses, deployment, tmp_path_factory):
    """A tab with a page of another origin, in a browser in whose first tab somebody sees his runs in Prefect.

    MLflow trusts pages of every port of this machine, so the page's origin has a name.
    """
    folder = tmp_path_factory.mktemp("evil")
    (folder / "index.html").write_text("<!doctype html><title>evil</title><body>", encoding="utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with sync_api.sync_playwright() as playwright, ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", NAMES])
        context = browser.new_context()
        context.set_default_timeout(120_000)
        first, second = context.new_page(), context.new_page()
        log_in_to_page(first, addresses["prefect"])
        first.goto(f"{addresses['prefect']}/flows")
        first.get_by_text("experiment", exact=True).first.wait_for()
        second.goto(f"http://evil.example:{server.server_port}/")
        yield second
        browser.close()
        server.shutdown()


def read_by(page, address, method, path, body):
    """What the page can read of all answers."""
    answers = page.evaluate(ATTACK, [address, method, path, body])
    return [answer for answer in answers if answer not in (None, "no-cors opaque ")]


def test_prefect_tells_it_nothing_and_does_nothing(page, addresses, deployment):
    address, number = addresses["prefect"], deployment["id"]
    command = {"pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}]}
    for method, path, body in (
        ("GET", f"/api/deployments/{number}", None),
        ("GET", "/api/csrf-token?client=page", None),
        ("POST", "/api/flow_runs/filter", "{}"),
        ("PATCH", f"/api/deployments/{number}", json.dumps(command)),
        ("POST", f"/api/deployments/{number}/create_flow_run", "{}"),
    ):
        assert read_by(page, address, method, path, body) == [], path
    page.evaluate(FORM, [address, f"/api/deployments/{number}/create_flow_run"])
    assert page.evaluate(SOCKET, f"{address.replace('http', 'ws')}/api/events/out") is None
    api = f"{address}/api"
    assert ask(api, f"/deployments/{number}", None)["pull_steps"] == deployment["pull_steps"]
    assert ask(api, "/flow_runs/filter", {}) == []


def test_mlflow_tells_it_nothing_and_does_nothing(page, addresses):
    address, login = addresses["mlflow"], {"Authorization": addresses["mlflow login"]}
    search, create = "/api/2.0/mlflow/experiments/search", "/api/2.0/mlflow/experiments/create"
    before = request(address, "POST", search, {"max_results": 100}, login)
    assert before[0] == 200
    for method, path, body in (
        ("GET", f"{search}?max_results=100", None),
        ("POST", search, '{"max_results": 100}'),
        ("POST", create, '{"name": "made by a page"}'),
        ("POST", f"/ajax-{create[1:]}", '{"name": "made by a page"}'),
    ):
        assert read_by(page, address, method, path, body) == [], path
    page.evaluate(FORM, [address, create])
    assert request(address, "POST", search, {"max_results": 100}, login)[2] == before[2]
    # Nor is a page answered whose owner has pointed its name at this machine, so that its origin is the server's own.
    name = f"evil.example:{address.rpartition(':')[2]}"
    assert request(address, "POST", search, {}, {"Host": name, "Origin": f"http://{name}", **login})[0] == 403
