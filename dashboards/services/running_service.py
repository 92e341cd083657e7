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
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from filelock import FileLock

from dashboards.services.service import HOST, KINDS, STATE_FOLDER, Service, answers
from tasks.errors import ResourceError
from tasks.files.atomic_file import atomic_writer, make_folder

MARK = "PALIMPSEST_SERVICE"
START_SECONDS = 180.0
"""Seconds until a service must answer; five to twenty seconds are usual."""
STOP_SECONDS = 15.0
"""Seconds for a service to end after a stop request."""


@dataclass(frozen=True)
class RunningService:
    """A started service, read from its file."""

    name: str
    pid: int
    mark: str
    port: int

    @property
    def address(self) -> str:
        """``http://127.0.0.1:4200``."""
        return f"http://{HOST}:{self.port}"

    def family(self) -> list[psutil.Process]:
        """Its process, if it is the started one, and its child processes, also if they have outlived it."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    @property
    def alive(self) -> bool:
        """Whether the started process runs."""
        return any(process.pid == self.pid for process in self.family())

    def stop(self, folder: Path) -> bool:
        """End its processes and remove its file; return whether there was a process to end."""
        family = self.family()
        _end([process for process in family if process.pid == self.pid], psutil.Process.terminate)
        _end(self.family(), psutil.Process.kill)
        record_path(folder, self.name).unlink(missing_ok=True)
        return bool(family)


def _end(processes: Sequence[psutil.Process], end: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            end(process)
    psutil.wait_procs(processes, timeout=STOP_SECONDS)


def start_services(folder: Path, services: Sequence[Service]) -> list[str]:
    """Start the services that do not run yet, wait until all answer, and return the names of the started ones.

    Raises ``ResourceError`` if a port is in use, or if a service ends or does not answer in time. The services that
    this call has started are then stopped.
    """
    make_folder(folder / STATE_FOLDER, private=True)
    with FileLock(folder / STATE_FOLDER / "lock", mode=0o600):
        running = running_services(folder)
        missing = [service for service in services if service.name not in running]
        for service in missing:
            _check_port(service)
        started: list[RunningService] = []
        try:
            started += (_start(service, folder) for service in missing)
            for waited in [*started, *(running[service.name] for service in services if service.name in running)]:
                _wait_until_ready(waited)
        except BaseException:
            for waited in reversed(started):
                waited.stop(folder)
            raise
    return [service.name for service in started]


def stop_services(folder: Path, names: Iterable[str]) -> list[str]:
    """Stop the running ones of the services, and return their names."""
    running = running_services(folder)
    return [name for name in names if name in running and running[name].stop(folder)]


def running_services(folder: Path) -> dict[str, RunningService]:
    """The running services of this checkout, by name.

    The children of a killed service are ended, and its file is removed.
    """
    files = sorted((folder / STATE_FOLDER).glob("*.json"))
    found = [RunningService(**json.loads(path.read_text(encoding="utf-8"))) for path in files]
    running = {service.name: service for service in found if service.alive}
    for service in found:
        if service.name not in running:
            service.stop(folder)
    return running


def record_path(folder: Path, name: str) -> Path:
    """The path of a started service's file."""
    return folder / STATE_FOLDER / f"{name}.json"


def _start(service: Service, folder: Path) -> RunningService:
    """Start a service in a session of its own, so that closing the terminal does not end it; return at once."""
    mark, log = uuid.uuid4().hex, folder / _log(service.name)
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
    running = RunningService(service.name, process.pid, mark, service.port)
    with atomic_writer(record_path(folder, service.name), private=True) as stream:
        json.dump(asdict(running), stream)
    return running


def _wait_until_ready(service: RunningService) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(service.port, KINDS[service.name].health):
        late = time.monotonic() > deadline
        if late or not service.alive:
            failure = f"does not answer after {START_SECONDS:.0f} seconds" if late else "ended while it started"
            raise ResourceError(
                f"{KINDS[service.name].title} {failure}; its output is in {str(_log(service.name))!r}. "
                "The services that this call started are stopped again; 'make down' stops the others"
            )
        time.sleep(0.1)


def _check_port(service: Service) -> None:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, service.port))
        except OSError as error:
            raise ResourceError(
                f"port {service.port} of {KINDS[service.name].title} is in use ({error.strerror}); stop the program "
                f"that has it, or choose another port: make up {KINDS[service.name].variable}=NUMBER"
            ) from None


def _log(name: str) -> Path:
    return STATE_FOLDER / f"{name}.log"
