"""Starts services, finds running ones, and stops them.

The file ``.palimpsest/services/NAME.json`` has a service's process number and a mark in the environment of the service
and its children. A process without the mark has reused the number, and is not touched.
"""

import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
from filelock import FileLock

from dashboards.services.service import HOST, KINDS, MARK, STATE_FOLDER, Service, answers
from tasks.errors import ResourceError
from tasks.files.atomic_file import atomic_writer, make_folder

START_SECONDS = 180.0
"""Seconds until a service must answer; five to twenty seconds are usual."""
STOP_SECONDS = 15.0
"""Seconds for a service to end after a stop request."""


def record_path(folder: Path, name: str) -> Path:
    """The path of a started service's file."""
    return folder / STATE_FOLDER / f"{name}.json"


def running_services(folder: Path) -> dict[str, Service]:
    """The running services of this checkout, by name.

    The children of a killed service are ended, and its file is removed.
    """
    files = sorted((folder / STATE_FOLDER).glob("*.json"))
    found = [Service(**json.loads(path.read_text(encoding="utf-8"))) for path in files]
    running = {service.name: service for service in found if service.alive}
    for service in found:
        if service.name not in running:
            _stop(service, folder)
    return running


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
        started: list[Service] = []
        try:
            started += (_start(service, folder) for service in missing)
            for service in started:
                _wait_until_ready(service)
        except BaseException:
            for service in reversed(started):
                _stop(service, folder)
            raise
    return [service.name for service in started]


def stop_services(folder: Path, names: Iterable[str]) -> list[str]:
    """Stop the running ones of the services, and return their names."""
    running = running_services(folder)
    return [name for name in names if name in running and _stop(running[name], folder)]


def _start(service: Service, folder: Path) -> Service:
    """Start a service in a session of its own, so that closing the terminal does not end it; return at once."""
    mark, log = uuid.uuid4().hex, folder / STATE_FOLDER / f"{service.name}.log"
    log.unlink(missing_ok=True)
    log.touch(mode=0o600)
    with open(log, "w") as stream:
        process = subprocess.Popen(
            service.program,
            cwd=folder,
            env={**os.environ, **service.environment, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            umask=0o077,
        )
    record = {"name": service.name, "port": service.port, "pid": process.pid, "mark": mark}
    with atomic_writer(record_path(folder, service.name), private=True) as stream:
        json.dump(record, stream)
    return replace(service, pid=process.pid, mark=mark)


def _stop(service: Service, folder: Path) -> bool:
    """End its processes and remove its file; return whether there was a process to end."""
    family = service.family()
    for end in (psutil.Process.terminate, psutil.Process.kill):
        processes = service.family()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                end(process)
        psutil.wait_procs(processes, timeout=STOP_SECONDS)
    record_path(folder, service.name).unlink(missing_ok=True)
    return bool(family)


def _wait_until_ready(service: Service) -> None:
    deadline, kind = time.monotonic() + START_SECONDS, KINDS[service.name]
    while not answers(service.port, kind.health):
        late = time.monotonic() > deadline
        if late or not service.alive:
            failure = f"does not answer after {START_SECONDS:.0f} seconds" if late else "ended while it started"
            log = STATE_FOLDER / f"{service.name}.log"
            raise ResourceError(f"{kind.title} {failure}; its output is in {str(log)!r}. No service was started")
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
