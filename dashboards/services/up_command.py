"""Start Prefect and MLflow on this machine's loopback interface, and wait until each answers.

'palimpsest run' and 'palimpsest serve' in this folder report to the Prefect server that this
command started. A service that runs already stays as it is.

Both services ask for a password. The passwords are random, in .palimpsest/services/passwords,
readable by you alone. Prefect takes the whole of palimpsest:…, and MLflow's user is admin. Other
programs of yours log in after

    set -a; . .palimpsest/services/passwords; set +a

The environment variables PALIMPSEST_PREFECT_PORT and PALIMPSEST_MLFLOW_PORT set other ports.

examples:
    palimpsest up              both
    palimpsest up mlflow       MLflow alone
"""

from typing import Annotated, Literal

from pydantic import Field

from dashboards.services.services import FILE, KINDS, running_services, start_services
from tasks.options import Argument, Command, Options

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
    from flows.graph.graph import project_folder
    from flows.prefect_flow.prefect_api import configure as configure_prefect
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters
    from tasks.results.tracking.tracking_store import tracking_uri

    names, folder = options.names, project_folder()
    tracking = read_parameters(folder / DEFAULT_PATH).tracking
    if "prefect" in names:
        configure_prefect(folder, verbose=True)
    # The address of a server is no database of one.
    store = tracking.uri if tracking_uri(tracking).startswith("http") else tracking_uri(tracking)
    started = start_services(folder, names, store)
    for name, running in running_services(folder).items():
        if name in names:
            state = "started" if name in started else "runs already"
            print(f"{KINDS[name].title:<8} {running.address:<24} {state}")
    print(f"passwords are in {FILE.as_posix()}; 'make down' stops the started services")


COMMAND = Command(ServicesOptions, run)
