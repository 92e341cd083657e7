"""Stop the services that 'palimpsest up' started in this checkout, and nothing else.

examples:
    palimpsest down            both
    palimpsest down mlflow     MLflow alone
"""

from dashboards.services.services import KINDS, stop_services
from dashboards.services.up_command import ServicesOptions
from tasks.options import Command

SUMMARY = "stop the services that 'palimpsest up' started"


def run(options: ServicesOptions) -> None:
    """Stop the services and print their names."""
    from flows.graph.graph import project_folder

    stopped = stop_services(project_folder(), options.names)
    for name in stopped:
        print(f"{KINDS[name].title:<8} stopped")
    if not stopped:
        print("no service of this checkout runs")


COMMAND = Command(ServicesOptions, run)
