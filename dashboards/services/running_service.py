"""Starts services, finds running ones, and stops them.

A service and its children have a mark in their environment: its name, its port, and the folder of the checkout. So no
file says what runs, and no other process is touched.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import FileLock

from dashboards.services.service import HOST, KINDS, STATE_FOLDER, Service, answers
from tasks.errors import ResourceError
from tasks.files.atomic_file import make_folder

MARK = "PALIMPSEST_SERVICE"
START_SECONDS = 180.0
"""Seconds until a service must answer; five to twenty seconds are usual."""
STOP_SECONDS = 15.0
"""Seconds for a service to end after a stop request."""


def running_services(folder: Path) -> dict[str, Service]:
    """The running services of this checkout, by name, in the order in which they start."""
    found: dict[str, Service] = {}
    # Most checkouts have none, and to look at every process takes a moment.
    for process in psutil.process_iter() if (folder / STATE_FOLDER).exists() else ():
        with suppress(psutil.Error, OSError):
            name, port, place = [*process.environ().get(MARK, "").split(" ", 2), "", ""][:3]
            if place == str(folder.resolve()) and process.status() != psutil.STATUS_ZOMBIE:
                found.setdefault(name, Service(name, int(port))).processes.append(process)
    return {name: found[name] for name in KINDS if name in found}


def start_services(folder: Path, services: Sequence[Service]) -> list[str]:
    """Start the services that do not run yet, wait until they answer, and return their names.

    Raises ``ResourceError`` if a port is in use, or if a service ends or does not answer in time. The services that
    this call has started are then stopped.
    """
    make_folder(folder / STATE_FOLDER, private=True)
    with FileLock(folder / STATE_FOLDER / "lock", mode=0o600):
        running = running_services(folder)
        missing = [service for service in services if service.name not in running]
        for service in missing:
            _check_port(service)
        try:
            for service, process in [(service, _start(service, folder)) for service in missing]:
                _wait_until_ready(service, process)
        except BaseException:
            stop_services(folder, [service.name for service in missing])
            raise
    return [service.name for service in missing]


def stop_services(folder: Path, names: Iterable[str]) -> list[str]:
    """Stop the running ones of the services, and return their names."""
    stopped = [name for name in running_services(folder) if name in names]
    for end in (psutil.Process.terminate, psutil.Process.kill):
        services = running_services(folder)
        processes = [process for name in stopped if name in services for process in services[name].processes]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                end(process)
        psutil.wait_procs(processes, timeout=STOP_SECONDS)
    return stopped


def _start(service: Service, folder: Path) -> subprocess.Popen[bytes]:
    """Start a service in a session of its own, so that closing the terminal does not end it; return at once."""
    log = folder / _log(service.name)
    log.unlink(missing_ok=True)
    log.touch(mode=0o600)
    mark = {MARK: f"{service.name} {service.port} {folder.resolve()}"}
    with open(log, "w") as stream:
        return subprocess.Popen(
            service.program,
            cwd=folder,
            env={**os.environ, **service.environment, **mark},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            umask=0o077,
        )


def _log(name: str) -> Path:
    return STATE_FOLDER / f"{name}.log"


def _wait_until_ready(service: Service, process: subprocess.Popen[bytes]) -> None:
    deadline, kind = time.monotonic() + START_SECONDS, KINDS[service.name]
    while not answers(service.port, kind.health):
        late = time.monotonic() > deadline
        if late or process.poll() is not None:
            failure = f"does not answer after {START_SECONDS:.0f} seconds" if late else "ended while it started"
            raise ResourceError(
                f"{kind.title} {failure}; its output is in {str(_log(service.name))!r}. The services that were started "
                "with it are stopped"
            )
        time.sleep(0.1)


def _check_port(service: Service) -> None:
    kind = KINDS[service.name]
    with socket.socket() as probe:
        # As servers do: a port whose last connections are closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, service.port))
        except OSError as error:
            raise ResourceError(
                f"port {service.port} of {kind.title} is in use ({error.strerror}); stop the program that has it, or "
                f"choose another port: make up {kind.variable}=NUMBER"
            ) from None
