"""A service that was started: its file, whether it still runs, and how it is stopped.

The file ``.palimpsest/services/NAME.json`` holds the number of the process and a mark that only its environment has.
Numbers are given again to other processes; a process without the mark is not ours, and is left alone.
"""

import http.client
import json
import os
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from dashboards.services.service import HOST, STATE_FOLDER, Service
from tasks.files.atomic_file import atomic_writer, make_folder

FOLDER = STATE_FOLDER
MARK = "PALIMPSEST_SERVICE"
STOP_SECONDS = 15.0
"""How long a service may take to end when it is asked to."""


@dataclass(frozen=True)
class RunningService:
    """A started service, as its file says."""

    name: str
    pid: int
    mark: str
    port: int
    address: str
    health: str
    log: str
    """Path of its output, below the folder of the project."""
    host: str = HOST
    """Where this machine reaches it."""
    asks: bool = False
    """Whether it asks for a password."""

    @property
    def alive(self) -> bool:
        """Whether the process runs and is the one that was started."""
        try:
            return self._is(psutil.Process(self.pid))
        except psutil.NoSuchProcess:
            return False

    @property
    def answers(self) -> bool:
        """Whether it is ready."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=5)
        try:
            connection.request("GET", self.health)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def family(self) -> list[psutil.Process]:
        """It and the processes that it started, also those that have outlived it."""
        return [process for process in psutil.process_iter() if _in_session(process, self.pid) and self._is(process)]

    def stop(self, folder: Path) -> bool:
        """End it and what it started, politely at first, and forget it; returns whether there was anything to end."""
        family = self.family()
        for process in family:
            if process.pid == self.pid:
                with suppress(psutil.NoSuchProcess):
                    process.terminate()
                psutil.wait_procs([process], timeout=STOP_SECONDS)
        for process in family:
            # Some have ended by now, and their numbers may be others': they are looked at again.
            if self._is(process):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        psutil.wait_procs(family, timeout=STOP_SECONDS)
        record_path(folder, self.name).unlink(missing_ok=True)
        return bool(family)

    def _is(self, process: psutil.Process) -> bool:
        """Whether a process has our mark and has not ended."""
        try:
            ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
            return not ended and process.environ().get(MARK) == self.mark
        except (psutil.Error, OSError):
            return False


def start(service: Service, folder: Path) -> RunningService:
    """Start a service in a session of its own, so that closing the terminal does not end it; returns at once."""
    make_folder(folder / FOLDER, private=True)
    log = FOLDER / f"{service.name}.log"
    mark = uuid.uuid4().hex
    handle = os.open(folder / log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        process = subprocess.Popen(
            service.program,
            cwd=folder,
            env={**os.environ, **service.environment, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            start_new_session=True,
            umask=0o077,
        )
    finally:
        os.close(handle)
    running = RunningService(
        name=service.name,
        pid=process.pid,
        mark=mark,
        port=service.port,
        address=service.address,
        health=service.health,
        log=log.as_posix(),
        host=service.host,
        asks=service.asks,
    )
    with atomic_writer(record_path(folder, service.name), private=True) as stream:
        json.dump(asdict(running), stream)
    return running


def wait_until_ready(service: RunningService, seconds: float) -> bool:
    """Block until the service answers; ``False`` where it ended before, or did not within the time."""
    deadline = time.monotonic() + seconds
    while not service.answers:
        if not service.alive or time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def running_services(folder: Path) -> dict[str, RunningService]:
    """The services of this checkout that run, by name.

    Of those that were killed, what they had started is ended and the file removed.
    """
    found = {}
    for path in sorted((folder / FOLDER).glob("*.json")):
        service = RunningService(**json.loads(path.read_text(encoding="utf-8")))
        if service.alive:
            found[service.name] = service
        else:
            service.stop(folder)
    return found


def record_path(folder: Path, name: str) -> Path:
    """The file of a started service."""
    return folder / FOLDER / f"{name}.json"


def _in_session(process: psutil.Process, session: int) -> bool:
    try:
        return os.getsid(process.pid) == session
    except OSError:
        return False
