"""Stop the services that 'palimpsest up' started in this checkout, and nothing else.

Each service is stopped by its process number, after a check that the process is still the one that
was started.

examples:
    palimpsest down            both
    palimpsest down mlflow     MLflow alone
"""

from dashboards.services.service import TITLES
from dashboards.services.up_command import ServicesOptions
from tasks.options import Command

SUMMARY = "stop the services that 'palimpsest up' started"


def run(options: ServicesOptions) -> None:
    """Stop the services and print their names."""
    from dashboards.services.running_service import stop_services
    from flows.graph.graph import project_folder

    stopped = stop_services(project_folder(), options.names)
    for name in stopped:
        print(f"{TITLES[name]:<8} stopped")
    if not stopped:
        print("no service of this checkout runs")


COMMAND = Command(ServicesOptions, run)
