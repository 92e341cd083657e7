"""Offer the experiment's deployments to Prefect from this machine, until Ctrl-C.

Prefect then starts runs on schedules, or when you ask for them. prefect.yaml has three deployments:

- nightly: the comparison, every night.
- new-data: a run when the data changed.
- once: a run that you start by hand, with a form in Prefect's UI.

Runs work in this folder, one after the other, as 'palimpsest run' does. The command needs a Prefect
server that stays: 'palimpsest up prefect', or PREFECT_API_URL. Schedules pause when the command
ends.

examples:
    palimpsest serve
    palimpsest serve once nightly      some of them
    prefect deployment run experiment/once -p 'only=["technique=allow_list"]'
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import chdir, suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tasks.errors import ParameterError, ResourceError
from tasks.options import Argument, Command, Options
from tasks.spelling import nearest

SUMMARY = "offer the experiment's deployments to Prefect from this machine"

FILE = "prefect.yaml"
STOP_SECONDS = 5.0
"""Seconds for Prefect after a signal to pause schedules and end runs."""


class ServeOptions(Options):
    """Options of the command: the deployments."""

    names: Annotated[list[str], Argument(positional=True, metavar="DEPLOYMENT")] = Field(default_factory=list)
    """deployments of prefect.yaml (default: all)"""


def run(options: ServeOptions) -> int:
    """Serve until a signal, then return 0."""
    from flows.checkout.run_lock import FOLDER_VARIABLE
    from flows.graph.graph import project_folder
    from flows.prefect_flow import prefect_api

    root = project_folder()
    deployments = read_deployments(root / FILE, options.names)
    prefect_api.configure(root, verbose=True)
    os.environ[FOLDER_VARIABLE] = str(root)
    url = prefect_api.configured_url()
    if url is None:
        raise ResourceError(
            "no Prefect server is configured; start one with 'palimpsest up prefect', or set PREFECT_API_URL to the "
            "address of yours, such as http://127.0.0.1:4200/api"
        )
    _check_answers(url)
    from prefect.client.schemas.objects import ConcurrencyLimitConfig
    from prefect.deployments.runner import EntrypointType
    from prefect.schedules import Schedule

    from flows.prefect_flow.experiment import experiment

    with chdir(root):
        served: list[Any] = [
            experiment.to_deployment(
                deployment["name"],
                entrypoint_type=EntrypointType.MODULE_PATH,
                description=deployment.get("description"),
                tags=deployment.get("tags"),
                parameters=deployment.get("parameters"),
                schedules=[Schedule(**schedule) for schedule in deployment.get("schedules", [])],
                concurrency_limit=ConcurrencyLimitConfig(**deployment["concurrency_limit"])
                if "concurrency_limit" in deployment
                else None,
            )
            for deployment in deployments
        ]
        serve_until_signal(served)
    return 0


def serve_until_signal(deployments: Sequence[Any]) -> None:
    """Serve the deployments until SIGINT or SIGTERM; call it only from the main thread.

    Prefect's own ``serve`` handles a signal between its requests, and repeats those for minutes if the server is gone.
    Here Prefect works in a thread: it has ``STOP_SECONDS`` to pause schedules and to end runs, and then the process
    ends without it.
    """
    import asyncio

    import psutil
    from prefect import aserve

    loop = asyncio.new_event_loop()
    # One checkout holds one run at a time.
    serving = loop.create_task(aserve(*deployments, limit=1))
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: received.append(number))
    thread = threading.Thread(target=loop.run_until_complete, args=(asyncio.wait([serving]),), daemon=True)
    thread.start()
    while thread.is_alive() and not received:
        thread.join(0.1)
    if not received:
        raise ResourceError(
            f"Prefect no longer serves the deployments ({type(serving.exception()).__name__}); see that its server "
            "runs, and start this again"
        )
    loop.call_soon_threadsafe(serving.cancel)
    thread.join(STOP_SECONDS)
    if thread.is_alive():
        # The supervisors of the runs end their stages.
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def read_deployments(path: Path, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The deployments of ``prefect.yaml`` with the given names; without names, all.

    ``ParameterError`` if the file is missing or lacks such a deployment.
    """
    import yaml

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"there is no {path.name} in {str(path.parent)!r}; it names the deployments") from None
    except yaml.YAMLError as error:
        raise ParameterError(f"{path.name} is not YAML: {' '.join(str(error).split())}") from None
    found = {deployment["name"]: deployment for deployment in document.get("deployments") or []}
    for name in names:
        if name not in found:
            raise ParameterError(
                f"{path.name} has no deployment {name!r}{nearest(name, found)}; there are: {', '.join(found) or 'none'}"
            )
    if not found:
        raise ParameterError(f"{path.name} has no deployments")
    return [deployment for name, deployment in found.items() if name in names or not names]


def _check_answers(url: str) -> None:
    import httpx

    try:
        httpx.get(f"{url.rstrip('/')}/health", timeout=10).raise_for_status()
    except httpx.HTTPError as error:
        raise ResourceError(
            f"Prefect's server at {url!r} does not answer ({type(error).__name__}); start it with 'palimpsest up "
            "prefect', or correct PREFECT_API_URL"
        ) from None


COMMAND = Command(ServeOptions, run)
