"""Start Prefect and MLflow on this machine's loopback interface, and wait until each answers.

A service that runs already stays as it is. 'palimpsest run' and 'palimpsest serve' in this folder
report to the Prefect server that this command started. 'palimpsest down' stops the services that
this command started, and nothing else.

Prefect always asks for a password. With --password, MLflow asks too: use it on a machine that
others use. With --host, other machines reach both services, and both ask for a password. Passwords
are random. They are in .palimpsest/services/passwords, readable by you alone. To set them yourself,
use the environment variables PREFECT_SERVER_API_AUTH_STRING (USER:PASSWORD) and
MLFLOW_AUTH_ADMIN_PASSWORD. Other programs of yours log in after

    set -a; . .palimpsest/services/passwords; set +a

The environment variables PALIMPSEST_PREFECT_PORT and PALIMPSEST_MLFLOW_PORT set other ports. If
PREFECT_API_URL, MLFLOW_TRACKING_URI or tracking.uri names a server of yours, it is used, and none
is started.

examples:
    palimpsest up              both
    palimpsest up mlflow       MLflow alone
"""

import http.client
import json
import os
import sys
from typing import Annotated
from urllib.parse import quote, urlsplit

from pydantic import Field

from tasks.options import Argument, Command, Options
from tasks.results.summary.summary_file import RUNS_NOT_TRACES, VIEW, VIEW_TAG

_SECONDS = 5


def runs_table(address: str, experiment: str) -> str | None:
    """The address of the table, with the columns that compare where publishing has offered them.

    ``None`` where the server does not say: it asks for a password, or has no such experiment yet.
    """
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request(
            "GET", f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={quote(experiment, safe='')}"
        )
        response = connection.getresponse()
        if response.status != 200:
            return None
        found = json.loads(response.read())["experiment"]
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    finally:
        connection.close()
    offered = any(tag["key"] == VIEW_TAG for tag in found.get("tags", []))
    view = f"&viewStateShareKey={VIEW}" if offered else ""
    return f"{address}/#/experiments/{found['experiment_id']}/runs?{RUNS_NOT_TRACES}{view}"


SUMMARY = "start Prefect and MLflow on this machine"


class ServicesOptions(Options):
    """Which services."""

    services: Annotated[list[str], Argument(positional=True, metavar="SERVICE")] = Field(default_factory=list)
    """prefect, mlflow (default: both)"""


class UpOptions(ServicesOptions):
    """What is started, and who reaches it."""

    host: str = "127.0.0.1"
    """interface that Prefect and MLflow listen on; no other machine reaches 127.0.0.1"""
    password: bool | None = None
    """MLflow asks for a password too, as Prefect does (default: as last time)"""


def login(name: str, password: str) -> str:
    """How a person logs in. A password is shown on a terminal alone: what is no terminal may be a log."""
    from dashboards.services.passwords import FILE, VARIABLES
    from dashboards.services.service import mlflow_user

    if os.environ.get(VARIABLES[name]) == password:
        password = f"as in {VARIABLES[name]}"
    elif not sys.stdout.isatty():
        password = f"in {FILE.as_posix()}"
    return f"user {mlflow_user()}, password {password}" if name == "mlflow" else f"password {password}"


def run(options: UpOptions) -> None:
    """Start them and print their addresses."""
    from dashboards.services.service import TITLES, check_names, ports_by_setting
    from dashboards.services.starting import start_services
    from flows.graph.graph import project_folder
    from flows.prefect_flow.prefect_api import configure as configure_prefect
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    names, ports = check_names(options.services), ports_by_setting()
    folder = project_folder()
    tracking = read_parameters(folder / DEFAULT_PATH).tracking
    if "prefect" in names:
        configure_prefect(folder, verbose=True)
    shown = start_services(folder, names, ports, tracking, host=options.host, everywhere=options.password)
    for service in shown:
        print(f"{TITLES[service.name]:<8} {service.address:<24} {service.state}")
        if service.password is not None:
            print(f"{'':<8} {login(service.name, service.password)}")
        if service.name == "mlflow" and service.state != "yours":
            table = runs_table(service.address, tracking.experiment)
            if table is not None:
                print(f"{'':<8} {table}")
    print("'make down' stops what was started")


COMMAND = Command(UpOptions, run)
