"""Services that other machines reach ask for passwords; a run finds the server of ``palimpsest up``."""

import base64
import http.client
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dashboards.services.passwords import FILE, Passwords, keep_passwords, read_passwords
from dashboards.services.running_service import RunningService, start
from dashboards.services.service import (
    Service,
    check_names,
    free_port,
    is_loopback,
    mlflow_service,
    prefect_service,
    reached_at,
)
from dashboards.services.starting import start_services, stop_services
from flows.prefect_flow import prefect_api
from tasks.errors import ParameterError, ResourceError
from tasks.results.tracking.settings import TrackingSettings

CHECKOUT = Path(__file__).parents[2]
PASSWORDS = {
    "PREFECT_SERVER_API_AUTH_STRING": "reader:a password",
    "MLFLOW_AUTH_ADMIN_PASSWORD": "twelve letters",
}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*PASSWORDS, "PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "MLFLOW_TRACKING_URI"):
        # Set first, so that what a test sets is taken back too.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect home"))


def test_prefect_always_asks_and_mlflow_where_it_is_asked_to(tmp_path: Path) -> None:
    def kept(host: str, everywhere: bool | None) -> Passwords:
        passwords = read_passwords(tmp_path, check_names([]), host, everywhere)
        keep_passwords(tmp_path, passwords)
        return passwords

    (tmp_path / FILE).parent.mkdir(parents=True)
    first = kept("127.0.0.1", None)
    assert first.mlflow is None
    assert kept("127.0.0.1", None) == first
    second = kept("127.0.0.1", True)
    assert second.prefect == first.prefect
    assert second.prefect.split(":")[1] != second.mlflow
    assert min(map(len, (second.prefect, second.mlflow or ""))) >= 32
    # As last time, and so for other machines.
    assert kept("127.0.0.1", None) == kept("0.0.0.0", None) == second
    assert kept("127.0.0.1", False) == first
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / FILE).parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ParameterError, match=r"other machines would reach MLflow on '0\.0\.0\.0'"):
        kept("0.0.0.0", False)


def test_weak_passwords_are_refused_without_being_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "no-colon")
    monkeypatch.setenv("MLFLOW_AUTH_ADMIN_PASSWORD", "eleven char")
    with pytest.raises(ParameterError) as caught:
        start_services(tmp_path, check_names([]), {}, TrackingSettings())
    assert "PREFECT_SERVER_API_AUTH_STRING is not of the form USER:PASSWORD" in str(caught.value)
    assert "MLFLOW_AUTH_ADMIN_PASSWORD has fewer than 12 characters" in str(caught.value)
    assert "no-colon" not in str(caught.value)
    assert "eleven char" not in str(caught.value)


def test_addresses() -> None:
    assert [
        is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.0.0.9", "0.0.0.0", "::", "10.1.2.3")
    ] == [*[True] * 4, *[False] * 3]
    with pytest.raises(ParameterError, match=r"--host 'kitchen' is no address"):
        is_loopback("kitchen")
    assert [reached_at(host) for host in ("0.0.0.0", "::", "10.1.2.3")] == ["127.0.0.1", "::1", "10.1.2.3"]


def test_passwords_stand_in_no_command_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PASSWORDS.items():
        monkeypatch.setenv(name, value)
    passwords = read_passwords(tmp_path, check_names([]), "0.0.0.0", None)
    services = [
        prefect_service(4200, passwords.prefect, "0.0.0.0"),
        mlflow_service(5000, "sqlite:///mlflow.db", tmp_path, passwords.mlflow, "0.0.0.0"),
    ]
    keep_passwords(tmp_path, passwords)
    shown = json.dumps([list(service.program) for service in services])
    written = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file())
    assert "basic-auth" in shown
    for value in PASSWORDS.values():
        assert value.split(":")[-1] not in shown + written


def test_an_interface_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PASSWORDS.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ResourceError, match=r"--host '192\.0\.2\.7': this machine has no interface"):
        start_services(tmp_path, ["prefect"], {"prefect": free_port()}, TrackingSettings(), host="192.0.2.7")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningService]:
    """What ``palimpsest up prefect`` leaves, but for the server itself."""
    service = Service("prefect", 4321, "/", [sys.executable, "-c", "import time; time.sleep(600)"])
    running = start(service, tmp_path)
    yield running
    running.stop(tmp_path)


def test_a_run_finds_the_server_of_this_checkout(
    server: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefect_api.configure(tmp_path)
    assert os.environ["PREFECT_API_URL"] == "http://127.0.0.1:4321/api"
    # What the user has set stays.
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    prefect_api.configure(tmp_path)
    assert os.environ["PREFECT_API_URL"] == "http://prefect.example/api"


def test_a_server_that_has_ended_is_not_used(server: RunningService, tmp_path: Path) -> None:
    server.stop(tmp_path)
    prefect_api.configure(tmp_path)
    assert "PREFECT_API_URL" not in os.environ


@pytest.mark.parametrize("address", ["http://127.0.0.1:4321/api", None, "http://127.0.0.1:4322/api", "ended"])
def test_only_a_server_of_this_checkout_is_told_its_password(
    server: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    passwords = read_passwords(tmp_path, ["prefect"], "127.0.0.1", None)
    keep_passwords(tmp_path, passwords)
    expected = passwords.prefect if address in (None, f"{server.address}/api") else None
    if address == "ended":
        # Another program may have its port now.
        server.stop(tmp_path)
        address = f"{server.address}/api"
    if address is not None:
        monkeypatch.setenv("PREFECT_API_URL", address)
    prefect_api.configure(tmp_path)
    assert os.environ.get("PREFECT_API_AUTH_STRING") == expected


def test_a_service_that_runs_without_a_password_is_named(server: RunningService, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"Prefect runs without a password; stop it with 'palimpsest down prefect'"):
        start_services(tmp_path, ["prefect"], {"prefect": 4321}, TrackingSettings())


def status(address: str, user: str | None = None) -> int:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    headers = {"Content-Type": "application/json"}
    if user is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    connection.request("POST", parts.path, "{}", headers)
    found = connection.getresponse().status
    connection.close()
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("given", [True, False], ids=["given", "random"])
def test_servers_with_passwords_let_in_whoever_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    """On another address of the loopback network, so that nothing outside is ever listened to."""
    if importlib.util.find_spec("flask_wtf") is None:
        pytest.skip("MLflow's own authentication needs Flask-WTF (pip install -e '.[shared]')")
    if given:
        for name, value in PASSWORDS.items():
            monkeypatch.setenv(name, value)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "dvc.yaml").write_text("stages: {one: {cmd: echo 1 > one, outs: [one]}}\n", encoding="utf-8")
    shutil.copy(CHECKOUT / "params.yaml", tmp_path)
    ports = {"prefect": free_port(), "mlflow": free_port()}
    try:
        shown = start_services(
            tmp_path, ["prefect", "mlflow"], ports, TrackingSettings(), 180.0, "127.0.0.2", not given or None
        )
        prefect, mlflow = (service.address for service in shown)
        assert (shown[0].password == PASSWORDS["PREFECT_SERVER_API_AUTH_STRING"]) is given
        assert prefect == f"http://127.0.0.2:{ports['prefect']}"
        runs, experiments = f"{prefect}/api/flow_runs/count", f"{mlflow}/api/2.0/mlflow/experiments/search"
        assert status(runs) == status(runs, "reader:wrong") == 401
        # With the password alone: what a forged request lacks.
        assert status(runs, shown[0].password) == 403
        assert status(experiments) == status(experiments, "admin:wrong password") == 401
        assert status(experiments, f"admin:{shown[1].password}") not in (401, 403)

        command = [sys.executable, "-m", "tasks.cli", "run", "--json"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        environment["PREFECT_API_AUTH_STRING"] = "palimpsest:of another server"
        (tmp_path / "one").unlink()
        refused = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert refused.returncode == 1
        assert "set PREFECT_API_AUTH_STRING=USER:PASSWORD" in refused.stderr
        assert refused.stderr.count("\n") == 1
    finally:
        stop_services(tmp_path, check_names([]))
