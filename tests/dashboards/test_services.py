import os
import shutil
import signal
import socket
import time
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest
from dvc.repo import Repo

from dashboards.services import services
from dashboards.services.services import (
    FILE,
    KINDS,
    free_port,
    hand_over_passwords,
    make_passwords,
    port_of,
    running_services,
    stop_services,
)
from flows.prefect_flow import prefect_api
from tasks.cli import main
from tasks.errors import ParameterError, ResourceError

SERVER = """
import http.server, signal, subprocess, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""
ROOT = Path(__file__).parent.parent.parent
CLIENT = ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_PASSWORD")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder; services that a test leaves there are stopped."""
    for name in (*CLIENT, "MLFLOW_TRACKING_USERNAME", "PREFECT_SERVER_API_AUTH_STRING"):
        # Set first, so that a value that a test sets is taken back too.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name in KINDS:
        monkeypatch.setenv(f"PALIMPSEST_{name.upper()}_PORT", str(free_port()))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect home"))
    yield tmp_path
    stop_services(tmp_path, KINDS)


@pytest.fixture
def start(place, monkeypatch):
    """Starts small servers in the place of the real ones; ``options``: those of each server."""

    def start(code=SERVER, **options):
        for name, its_options in options.items():
            monkeypatch.setitem(KINDS, name, KINDS[name]._replace(program=["-c", code, *its_options]))
        return services.start_services(place, options, "sqlite:///mlflow.db")

    return start


def numbers(place):
    """The process numbers of each running service."""
    return {name: [process.pid for process in each.processes] for name, each in running_services(place).items()}


def test_services_start_once_outlive_the_terminal_and_are_stopped(place, start):
    assert start(prefect=[]) == ["prefect"]
    (first,) = numbers(place)["prefect"]
    assert start(prefect=[], mlflow=[]) == ["mlflow"]
    found = numbers(place)
    assert found["prefect"] == [first]
    assert os.getsid(first) == first != os.getsid(0)
    # Services of another checkout are others.
    assert running_services(place / "elsewhere") == {}
    assert stop_services(place, KINDS) == ["prefect", "mlflow"]
    assert stop_services(place, KINDS) == []


def test_a_service_that_cannot_start_is_named_and_the_others_are_stopped(place, start, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("PALIMPSEST_MLFLOW_PORT", "80")
        with pytest.raises(ParameterError, match="PALIMPSEST_MLFLOW_PORT='80' is no port"):
            start(mlflow=[])
    port = port_of("mlflow")
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(ResourceError, match=f"port {port} of MLflow is in use.*PALIMPSEST_MLFLOW_PORT"):
            start(prefect=[], mlflow=[])
    fails = "import sys; 'prefect' in sys.argv or sys.exit(print('no such thing', flush=True) or 3)\n" + SERVER
    with pytest.raises(ResourceError, match=r"MLflow ended while it started; .*services/mlflow\.log"):
        start(fails, prefect=["prefect"], mlflow=[])
    log = place / ".palimpsest" / "services" / "mlflow.log"
    assert log.read_text(encoding="utf-8") == "no such thing\n"
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(services, "START_SECONDS", 1.0)
    with pytest.raises(ResourceError, match="MLflow does not answer after 1 seconds"):
        start("import time; time.sleep(600)", mlflow=[])
    assert running_services(place) == {}


def test_no_process_of_a_service_is_left(place, start, monkeypatch):
    """Of one that ignores the polite signal, and of one that was killed and had started another."""
    monkeypatch.setattr(services, "STOP_SECONDS", 0.5)
    start(mlflow=["stubborn"], prefect=["child"])
    deadline = time.monotonic() + 10
    while len(numbers(place)["prefect"]) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    killed = min(numbers(place)["prefect"])
    os.kill(killed, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(killed)], timeout=5)
    assert len(numbers(place)["prefect"]) == 1
    assert stop_services(place, KINDS) == ["prefect", "mlflow"]
    assert numbers(place) == {}


def test_passwords_are_made_once_in_a_closed_file_and_in_no_command(place, start, monkeypatch):
    monkeypatch.setenv("PREFECT_SERVER_UI_V2_ENABLED", "true")
    made = make_passwords(place)
    assert make_passwords(place) == made
    assert (place / FILE).stat().st_mode & 0o777 == 0o600
    assert (place / FILE).parent.stat().st_mode & 0o777 == 0o700
    secret = [made["PREFECT_API_AUTH_STRING"].removeprefix("palimpsest:"), made["MLFLOW_TRACKING_PASSWORD"]]
    assert min(map(len, secret)) == 32
    assert secret[0] != secret[1]
    assert start(prefect=[], mlflow=[]) == ["prefect", "mlflow"]
    of_server = {name: process for name, service in running_services(place).items() for process in service.processes}
    assert not any(word in " ".join(process.cmdline()) for word in secret for process in of_server.values())
    others = [path for path in place.rglob("*") if path.is_file() and path != place / FILE]
    assert not any(word in path.read_text(encoding="utf-8") for word in secret for path in others)
    prefect, mlflow = of_server["prefect"].environ(), of_server["mlflow"].environ()
    assert prefect["PREFECT_SERVER_API_AUTH_STRING"] == made["PREFECT_API_AUTH_STRING"]
    # Other variables of the user's count.
    assert prefect["PREFECT_SERVER_UI_V2_ENABLED"] == "true"
    assert prefect["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] == "false"
    assert mlflow["MLFLOW_AUTH_ADMIN_PASSWORD"] == made["MLFLOW_TRACKING_PASSWORD"]


def test_only_running_services_of_this_checkout_are_told_passwords(place, start, monkeypatch):
    made = make_passwords(place)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port_of('mlflow')}")
    hand_over_passwords(place)
    assert "MLFLOW_TRACKING_PASSWORD" not in os.environ
    start(prefect=[], mlflow=[])
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    prefect_api.configure(place)
    assert os.environ["MLFLOW_TRACKING_PASSWORD"] == made["MLFLOW_TRACKING_PASSWORD"]
    assert "PREFECT_API_AUTH_STRING" not in os.environ
    # A run without an address takes the server of this checkout.
    monkeypatch.delenv("PREFECT_API_URL")
    prefect_api.configure(place)
    assert os.environ["PREFECT_API_URL"] == f"http://127.0.0.1:{port_of('prefect')}/api"
    assert os.environ["PREFECT_API_AUTH_STRING"] == made["PREFECT_API_AUTH_STRING"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_real_services_listen_on_loopback_ask_for_passwords_and_end(place, monkeypatch, capsys):
    Repo.init(str(place), no_scm=True).close()
    (place / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    shutil.copy(ROOT / "params.yaml", place)
    monkeypatch.chdir(place)
    assert main(["up"]) == 0
    running = running_services(place)
    try:
        for service, path in (
            (running["prefect"], "/api/admin/settings"),
            (running["mlflow"], "/api/2.0/mlflow/experiments/search?max_results=5"),
        ):
            connections = [one for process in service.processes for one in process.net_connections("inet")]
            listening = [one.laddr for one in connections if one.status == psutil.CONN_LISTEN]
            assert {where.ip for where in listening} == {"127.0.0.1"}
            assert service.port in {where.port for where in listening}
            asked = HTTPConnection("127.0.0.1", service.port, timeout=30)
            asked.request("GET", path)
            assert asked.getresponse().status == 401
        assert (place / "mlflow.db").stat().st_mode & 0o077 == 0
        hand_over = make_passwords(place)
        for name, value in hand_over.items():
            monkeypatch.setenv(name, value)
        from mlflow import MlflowClient

        assert MlflowClient(running["mlflow"].address).search_experiments()
        assert main(["up"]) == 0
    finally:
        assert main(["down"]) == 0
    said = capsys.readouterr().out
    assert main(["down"]) == 0
    assert running_services(place) == {}
    assert [said.count(word) for word in (" started", " runs already", " stopped")] == [2, 2, 2]
    assert capsys.readouterr().out == "no service of this checkout runs\n"


def test_ports_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("PALIMPSEST_PREFECT_PORT", raising=False)
    monkeypatch.setenv("PALIMPSEST_MLFLOW_PORT", "5001")
    assert [port_of("prefect"), port_of("mlflow")] == [4200, 5001]
    for text in ("http", "80", "70000", "٥٠٠٠"):
        monkeypatch.setenv("PALIMPSEST_PREFECT_PORT", text)
        with pytest.raises(ParameterError, match=r"PALIMPSEST_PREFECT_PORT=.* is no port"):
            port_of("prefect")
