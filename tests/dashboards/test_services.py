import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest
from dvc.repo import Repo

from dashboards.services import running_service, starting
from dashboards.services.running_service import record_path, running_services
from dashboards.services.service import Service, check_names, free_port, is_at, ports_by_setting
from dashboards.services.starting import start_services, stop_services, users_servers
from dashboards.services.up_command import runs_table
from tasks.cli import main
from tasks.errors import ParameterError, ResourceError
from tasks.results.tracking.settings import TrackingSettings

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
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
ROOT = Path(__file__).parent.parent.parent
TRACKING = TrackingSettings()


@pytest.fixture
def ports():
    return {"prefect": free_port(), "mlflow": free_port()}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder whose services are small servers; what is left of them is stopped."""
    for name in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)
    use(monkeypatch)
    yield tmp_path
    stop_services(tmp_path, check_names([]))


def use(monkeypatch, *options: str, code: str = SERVER) -> None:
    monkeypatch.setattr(
        starting,
        "_service",
        lambda name, folder, port, tracking, host, passwords: Service(
            name,
            port,
            "/health",
            [sys.executable, "-c", code, str(port), *options],
            asks=passwords.of(name) is not None,
        ),
    )


def test_services_start_once_and_are_stopped(place, ports):
    shown = start_services(place, ["prefect"], ports, TRACKING)
    assert [(one.name, one.address, one.state) for one in shown] == [
        ("prefect", f"http://127.0.0.1:{ports['prefect']}", "started")
    ]
    numbers = {name: service.pid for name, service in running_services(place).items()}
    again = start_services(place, ["prefect", "mlflow"], ports, TRACKING)
    assert [one.state for one in again] == ["runs already", "started"]
    after = {name: service.pid for name, service in running_services(place).items()}
    assert after.items() >= numbers.items()
    assert [service.name for service in stop_services(place, check_names([]))] == ["mlflow", "prefect"]
    assert not any(psutil.pid_exists(pid) and alive(pid) for pid in after.values())
    assert stop_services(place, check_names([])) == []


def alive(pid: int) -> bool:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_service_outlives_the_terminal(place, ports):
    start_services(place, ["mlflow"], ports, TRACKING)
    pid = running_services(place)["mlflow"].pid
    assert os.getsid(pid) == pid != os.getsid(0)


def test_a_port_in_use_names_the_port_and_the_remedy_and_starts_nothing(place, ports):
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports["mlflow"]))
        other.listen()
        with pytest.raises(ResourceError) as caught:
            start_services(place, check_names([]), ports, TRACKING)
    assert f"port {ports['mlflow']}, on which MLflow would listen, is in use" in str(caught.value)
    assert "PALIMPSEST_MLFLOW_PORT" in str(caught.value)
    assert running_services(place) == {}


def test_a_service_that_ends_at_its_start_names_its_log_and_takes_the_others_down(place, ports, monkeypatch):
    fails = "import sys; print('no such thing'); sys.exit(3)"
    monkeypatch.setattr(
        starting,
        "_service",
        lambda name, folder, port, tracking, host, passwords: Service(
            name, port, "/", [sys.executable, "-c", SERVER if name == "prefect" else fails, str(port)]
        ),
    )
    with pytest.raises(ResourceError, match=r"MLflow ended while it started; .*services/mlflow\.log"):
        start_services(place, ["prefect", "mlflow"], ports, TRACKING)
    assert running_services(place) == {}
    log = place / ".palimpsest" / "services" / "mlflow.log"
    assert log.read_text(encoding="utf-8") == "no such thing\n"
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_a_service_that_never_answers_is_given_up(place, ports, monkeypatch):
    use(monkeypatch, code="import time; time.sleep(600)")
    with pytest.raises(ResourceError, match="MLflow does not answer after 1 seconds"):
        start_services(place, ["mlflow"], ports, TRACKING, seconds=1.0)
    assert running_services(place) == {}


def test_a_process_that_has_got_the_number_is_left_alone(place):
    foreign = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        path = record_path(place, "mlflow")
        path.parent.mkdir(parents=True)
        record = {
            "name": "mlflow",
            "pid": foreign.pid,
            "mark": "0" * 32,
            "port": 1,
            "address": "",
            "health": "",
            "log": "",
        }
        path.write_text(json.dumps(record), encoding="utf-8")
        assert stop_services(place, check_names([])) == []
        assert not path.exists()
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


def test_a_service_that_does_not_listen_is_killed(place, ports, monkeypatch):
    monkeypatch.setattr(running_service, "STOP_SECONDS", 0.5)
    use(monkeypatch, "stubborn")
    start_services(place, ["mlflow"], ports, TRACKING)
    pid = running_services(place)["mlflow"].pid
    stop_services(place, ["mlflow"])
    assert not psutil.pid_exists(pid) or not alive(pid)


def test_what_a_killed_service_had_started_is_ended(place, ports, monkeypatch):
    use(monkeypatch, "child")
    start_services(place, ["mlflow"], ports, TRACKING)
    service = running_services(place)["mlflow"]
    deadline = time.monotonic() + 10
    while len(service.family()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    (child,) = [process.pid for process in service.family() if process.pid != service.pid]
    os.kill(service.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(service.pid)], timeout=5)
    assert alive(child)
    (shown,) = start_services(place, ["mlflow"], ports, TRACKING)
    assert shown.state == "started"
    assert not psutil.pid_exists(child) or not alive(child)


def test_ports_come_from_the_environment_and_names_are_checked():
    assert ports_by_setting({}) == {"prefect": 4200, "mlflow": 5000}
    assert ports_by_setting({"PALIMPSEST_MLFLOW_PORT": "5001"})["mlflow"] == 5001
    for text in ("http", "80", "70000", "-1", "٥٠٠٠"):
        with pytest.raises(ParameterError, match=r"PALIMPSEST_PREFECT_PORT=.* is no port"):
            ports_by_setting({"PALIMPSEST_PREFECT_PORT": text})
    with pytest.raises(ParameterError, match="Prefect and MLflow would both have port 4200"):
        ports_by_setting({"PALIMPSEST_MLFLOW_PORT": "4200"})
    assert check_names(["mlflow", "prefect"]) == ["prefect", "mlflow"]
    with pytest.raises(ParameterError, match="did you mean 'mlflow'"):
        check_names(["mlfow"])


def test_servers_of_the_users_are_used(monkeypatch):
    ports = {"prefect": 4200, "mlflow": 5000}
    monkeypatch.setenv("PREFECT_API_URL", "https://prefect.example/api")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking.example:5000")
    assert users_servers(ports, TRACKING) == {
        "prefect": "https://prefect.example/api",
        "mlflow": "http://tracking.example:5000",
    }
    # What 'palimpsest up' tells to set is no server of the user's.
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert users_servers(ports, TRACKING) == {}
    # Nothing says what database such a server would have.
    assert users_servers(ports, TrackingSettings(uri="http://127.0.0.1:5000")) == {"mlflow": "http://127.0.0.1:5000"}
    assert is_at("http://localhost:5000/", 5000)
    assert not is_at("http://localhost:5001/", 5000)


def test_the_commands_say_what_they_did(place, ports, monkeypatch, capsys):
    Repo.init(str(place), no_scm=True).close()
    (place / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    shutil.copy(ROOT / "params.yaml", place)
    monkeypatch.chdir(place)
    monkeypatch.setenv("PALIMPSEST_MLFLOW_PORT", str(ports["mlflow"]))
    assert main(["up", "mlflow"]) == 0
    assert main(["up", "mlflow"]) == 0
    assert main(["down"]) == 0
    assert main(["down"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["MLflow", f"http://127.0.0.1:{ports['mlflow']}", "started"],
        ["'make", "down'", "stops", "what", "was", "started"],
        ["MLflow", f"http://127.0.0.1:{ports['mlflow']}", "runs", "already"],
        ["'make", "down'", "stops", "what", "was", "started"],
        ["MLflow", "stopped"],
        ["no", "service", "of", "this", "checkout", "runs"],
    ]


def test_mlflows_table_is_named_as_one_of_training_runs():
    runs = "?workflowType=machine_learning"
    for status, tags, query in [
        (200, ["mlflow.sharedViewState.palimpsest"], f"{runs}&viewStateShareKey=palimpsest"),
        (200, ["other"], runs),
        (401, [], None),
    ]:
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self, status=status, tags=tags, asked=asked):
                asked.append(self.path)
                self.send_response(status)
                self.end_headers()
                found = {"experiment_id": "7", "tags": [{"key": name, "value": "{}"} for name in tags]}
                self.wfile.write(json.dumps({"experiment": found}).encode())

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            Thread(target=server.handle_request, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}"
            expected = None if query is None else f"{address}/#/experiments/7/runs{query}"
            assert runs_table(address, "my runs") == expected
        assert asked == ["/api/2.0/mlflow/experiments/get-by-name?experiment_name=my%20runs"]
        # Nobody answers there any more.
        assert runs_table(address, "my runs") is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_real_services_listen_on_loopback_alone_and_take_less_than_600_mib(tmp_path, ports, monkeypatch):
    for name in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    try:
        shown = start_services(tmp_path, check_names([]), ports, TRACKING)
        assert [one.state for one in shown] == ["started"] * 2
        running = running_services(tmp_path)
        for service in running.values():
            assert sum(process.memory_full_info().pss for process in service.family()) < 600 * 2**20
            connections = [one for process in service.family() for one in process.net_connections("inet")]
            listening = [one.laddr for one in connections if one.status == psutil.CONN_LISTEN]
            assert {place.ip for place in listening} == {"127.0.0.1"}
            assert service.port in {place.port for place in listening}
        assert (tmp_path / "mlflow.db").stat().st_mode & 0o077 == 0
    finally:
        stopped = stop_services(tmp_path, check_names([]))
    assert len(stopped) == 2
    assert not any(service.family() for service in stopped)
