"""Commands of stages that a node of a cluster runs for DVC's process on the leading machine.

DVC stays here: it decides, locks, records. Only the command itself goes to ``flows.cluster``, through a socket of the
run, and its status comes back. Imports nothing of this project: the supervisor loads it by its path.
"""

import os
import signal
from multiprocessing.connection import Client
from typing import Any

TOLD = ("DVC_", "PREFECT__", "OMP_NUM_THREADS")
"""Prefixes of environment variables that a command gets from here; all others are the node's."""


def send_commands(address: str) -> None:
    """Make DVC in this process send commands to the socket at this address instead of starting them."""
    from dvc.stage import run
    from dvc.stage.exceptions import StageCmdFailedError

    def start(_executable: object, cmd: str, **options: Any) -> None:  # noqa: ANN401 - what DVC gives Popen
        def stopped(*_: object) -> None:
            # The connection ends with this, and with it the command.
            raise StageCmdFailedError(cmd, -signal.SIGINT)

        told = {name: value for name, value in options["env"].items() if name.startswith(TOLD)}
        with Client(address, "AF_UNIX") as connection:
            before = signal.signal(signal.SIGINT, stopped)
            try:
                connection.send((told["DVC_STAGE"], cmd, os.path.abspath(options["cwd"]), told))
                status, said = connection.recv()
            finally:
                signal.signal(signal.SIGINT, before)
        if said:
            print(said, flush=True)
        if status:
            raise StageCmdFailedError(cmd, status)

    run._run = start
