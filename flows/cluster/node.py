"""Code on a node of the cluster, in a process that Ray has started there.

Only names, a command and a status pass through Ray. A command's output goes to the log of its stage, on the file system
that all machines share.
"""

import os
import select
import socket
import time
from pathlib import Path

from filelock import lock_descriptor

from flows.checkout.run_lock import STATE_FOLDER
from flows.stages.asking import hang_up, status_from
from flows.stages.processes import SERVER_ENDED, Processes
from tasks.errors import PASSING

RANK = "PALIMPSEST_NODE"
"""Environment variable: rank of the machine among those that train together, from 0."""
PATIENCE_SECONDS = 30.0
"""Seconds for an earlier run's processes of a stage to end."""
_LOCKS = Path(STATE_FOLDER) / "cluster"
_processes: dict[str, Processes] = {}
"""Warm servers by folder: one stays for the next command, with the libraries that commands import."""


def run_command(stage: str, command: str, folder: str, log: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run the command of a stage; return its exit status, and one line: where it ran, or why it was not started.

    Whenever this process ends, the server stops the command within seconds. A stage that an earlier run has left
    running, here or on another machine, holds a lock: then nothing is started.
    """
    root = Path(folder)
    if not (root / STATE_FOLDER).is_dir():
        lacks = f"has no folder {folder!r}; all machines of a cluster work in one folder, on a shared disk"
        return 1, f"palimpsest: error: the node {socket.gethostname()} {lacks}"
    (root / _LOCKS).mkdir(exist_ok=True, mode=0o700)
    if folder not in _processes:
        # Ray's own number of threads; with another number the last digits of sums differ.
        os.environ.pop("OMP_NUM_THREADS", None)
        _processes[folder] = Processes(root)
    lock = os.open(
        root / _LOCKS / f"{Path(log).stem}.{environment.get(RANK, 0)}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not lock_descriptor(lock, blocking=False):
            if time.monotonic() > deadline:
                said = "is still at work for an earlier run, perhaps on another machine; end that one first"
                return PASSING, f"palimpsest: error: stage {stage!r} {said}"
            time.sleep(0.2)
        # The command itself holds the lock, until it has ended.
        line = _processes[folder].start(["/bin/sh", "-c", command], root / log, environment, [lock])
    finally:
        os.close(lock)
    try:
        select.select([line], [], [])
    except BaseException:  # Ray interrupts what is cancelled
        hang_up(line)
        status_from(line)
        raise
    status = status_from(line)
    return SERVER_ENDED if status is None else status, f"palimpsest: this ran on the node {socket.gethostname()}"


def meeting_point() -> tuple[str, int]:
    """Address and a free port of this node, where processes that train together meet."""
    import ray

    with socket.socket() as found:
        found.bind(("", 0))
        return str(ray.util.get_node_ip_address()), int(found.getsockname()[1])
