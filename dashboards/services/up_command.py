"""Start Prefect and MLflow on this machine's loopback interface, and wait until each answers.

A service that runs already stays as it is. 'palimpsest run' and 'palimpsest serve' in this folder
report to the Prefect server that this command started. 'palimpsest down' stops the services that
this command started, and nothing else.

Both services ask for a password. The passwords are random. They are in
.palimpsest/services/passwords, readable by you alone. Prefect takes the whole of palimpsest:…, and
MLflow's user is admin. Other programs of yours log in after

    set -a; . .palimpsest/services/passwords; set +a

The environment variables PALIMPSEST_PREFECT_PORT and PALIMPSEST_MLFLOW_PORT set other ports. If
PREFECT_API_URL, MLFLOW_TRACKING_URI or tracking.uri names a server of yours, it is used, and none
is started.

examples:
    palimpsest up              both
    palimpsest up mlflow       MLflow alone
"""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dashboards.services.service import (
    KINDS,
    TITLES,
    Service,
    is_at,
    is_server,
    mlflow_service,
    ports_by_setting,
    prefect_service,
)
from tasks.options import Argument, Command, Options
from tasks.results.tracking.settings import TrackingSettings

SUMMARY = "start Prefect and MLflow on this machine"


class ServicesOptions(Options):
    """Options of the command: the services."""

    services: Annotated[list[Literal["prefect", "mlflow"]], Argument(positional=True, metavar="SERVICE")] = Field(
        default_factory=list
    )
    """prefect, mlflow (default: both)"""

    @property
    def names(self) -> list[str]:
        """The named services, or all, in the order in which they start."""
        return [name for name in KINDS if not self.services or name in self.services]


def run(options: ServicesOptions) -> None:
    """Start them and print their addresses."""
    from dashboards.services.passwords import FILE
    from dashboards.services.running_service import running_services, start_services
    from flows.graph.graph import project_folder
    from flows.prefect_flow.prefect_api import configure as configure_prefect
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    names, folder = options.names, project_folder()
    tracking = read_parameters(folder / DEFAULT_PATH).tracking
    yours = {name: address for name, address in users_servers(tracking).items() if name in names}
    if "prefect" in names:
        configure_prefect(folder, verbose=True)
    services = [each for each in table(folder, tracking) if each.name in names and each.name not in yours]
    started = start_services(folder, services)
    for name, running in running_services(folder).items():
        if name in names:
            print(f"{TITLES[name]:<8} {running.address:<24} {'started' if name in started else 'runs already'}")
    for name, address in yours.items():
        print(f"{TITLES[name]:<8} {address:<24} yours")
    print(f"passwords are in {FILE.as_posix()}; 'make down' stops the started services")


def table(folder: Path, tracking: TrackingSettings) -> list[Service]:
    """The services of a checkout, in the order in which they start."""
    from dashboards.services.passwords import MLFLOW, PREFECT, make_passwords
    from tasks.results.tracking.tracking_store import tracking_uri

    passwords, ports = make_passwords(folder), ports_by_setting()
    store = tracking.uri if is_server(tracking_uri(tracking)) else tracking_uri(tracking)
    return [
        prefect_service(ports["prefect"], passwords[PREFECT]),
        mlflow_service(ports["mlflow"], store, folder, passwords[MLFLOW]),
    ]


def users_servers(tracking: TrackingSettings) -> dict[str, str]:
    """Servers in the user's settings, without passwords: they replace ours, unless they have the port of ours."""
    from tasks.results.tracking.tracking_store import shown_uri, tracking_uri

    addresses = {"prefect": os.environ.get(KINDS["prefect"].client, ""), "mlflow": tracking_uri(tracking)}
    ports = ports_by_setting()
    return {
        name: shown_uri(address)
        for name, address in addresses.items()
        if is_server(address) and not is_at(address, ports[name])
    }


COMMAND = Command(ServicesOptions, run)
