"""A page of another origin, in a browser that is logged in to MLflow, reads nothing there and changes nothing.

Such a browser sends MLflow's password with the page's requests, as it is sent here. It never sends Prefect's: what
anybody without that password gets is in ``tests/flows/test_strangers.py``.
"""

import base64

import pytest
from prefect_server import request

from dashboards.services.services import free_port, make_passwords, running_services, start_services, stop_services

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
EVIL = "http://evil.example"
SEARCH, CREATE = "/api/2.0/mlflow/experiments/search", "/api/2.0/mlflow/experiments/create"


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """Its address as 'palimpsest up' starts it, and what a logged-in browser sends."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("PALIMPSEST_MLFLOW_PORT", str(free_port()))
    monkeypatch.chdir(tmp_path)
    start_services(tmp_path, ["mlflow"], "sqlite:///mlflow.db")
    try:
        made = make_passwords(tmp_path)
        login = f"{made['MLFLOW_TRACKING_USERNAME']}:{made['MLFLOW_TRACKING_PASSWORD']}"
        address = running_services(tmp_path)["mlflow"].address
        yield address, {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
    finally:
        stop_services(tmp_path, ["mlflow"])


def test_mlflow_tells_it_nothing_and_does_nothing(mlflow):
    address, login = mlflow
    before = request(address, "POST", SEARCH, {"max_results": 100}, login)
    assert before[0] == 200
    made = {"name": "made by a page"}
    for method, path, body in (
        ("OPTIONS", CREATE, None),
        ("GET", f"{SEARCH}?max_results=100", None),
        ("POST", SEARCH, {"max_results": 100}),
        ("POST", CREATE, made),
        ("POST", f"/ajax-{CREATE[1:]}", made),
    ):
        for kind in ("application/json", "text/plain"):
            _, answered, _ = request(address, method, path, body, login | {"Origin": EVIL, "Content-Type": kind})
            assert "access-control-allow-origin" not in answered, (method, path, kind)
    assert request(address, "POST", SEARCH, {"max_results": 100}, login)[2] == before[2]
    # Nor is a page answered whose owner has pointed its name at this machine, so that its origin is the server's own.
    name = f"evil.example:{address.rpartition(':')[2]}"
    assert request(address, "POST", SEARCH, {}, {"Host": name, "Origin": f"http://{name}", **login})[0] == 403
