"""Start services and wait until each answers; those that run already stay as they are."""

import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dashboards.services.passwords import Passwords, keep_passwords, read_passwords
from dashboards.services.running_service import FOLDER, RunningService, running_services, start, wait_until_ready
from dashboards.services.service import (
    HOST,
    PORT_VARIABLES,
    TITLES,
    Service,
    address_of,
    is_at,
    is_server,
    mlflow_service,
    prefect_service,
    reached_at,
)
from tasks.errors import ResourceError
from tasks.files.atomic_file import make_folder
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import shown_uri, tracking_uri

START_SECONDS = 180.0
"""How long a service may take to answer; five to twenty seconds are usual."""


@dataclass(frozen=True)
class Shown:
    """A service as it is told about."""

    name: str
    address: str
    state: str
    """``started``, ``runs already``, or ``yours``: a server that the user's settings name, which is not started."""
    password: str | None = None
    """What it asks for, Prefect with the user before a colon; ``None`` where it asks nobody, or is the user's."""


def start_services(
    folder: Path,
    names: Sequence[str],
    ports: Mapping[str, int],
    tracking: TrackingSettings,
    seconds: float = START_SECONDS,
    host: str = HOST,
    everywhere: bool | None = None,
) -> list[Shown]:
    """Start the services that do not run yet and return all when each answers.

    ``host``: the interface that they listen on. ``everywhere``: whether MLflow asks for a password, as Prefect does;
    ``None`` for what was said last.
    Raises ``ParameterError`` where other machines would reach a service that asks nobody for a password.
    Raises ``ResourceError`` where a port is in use, where a service runs that should ask and does not, or where one
    ends or does not answer in time; what this call has started is stopped again then.
    """
    make_folder(folder / FOLDER, private=True)
    with one_at_a_time(folder):
        passwords = read_passwords(folder, names, host, everywhere)
        running = running_services(folder)
        for name, present in ((name, running[name]) for name in TITLES if name in running):
            if present.asks != (passwords.of(name) is not None):
                raise ResourceError(
                    f"{TITLES[name]} runs {'with' if present.asks else 'without'} a password; stop it with 'palimpsest "
                    f"down {name}', and start it again"
                )
        keep_passwords(folder, passwords)
        yours = {name: uri for name, uri in users_servers(ports, tracking, host).items() if name not in running}
        if "mlflow" in yours:
            # A server of the user's is told no password of ours.
            passwords = replace(passwords, mlflow=None)
        missing = [name for name in names if name not in running and name not in yours]
        for name in missing:
            check_port(name, ports[name], host)
        addresses = {name: address_of(ports[name], reached_at(host)) for name in missing}
        addresses |= yours | {name: service.address for name, service in running.items()}
        planned = [_service(name, folder, ports[name], tracking, host, passwords) for name in missing]
        started: list[RunningService] = []
        try:
            for service in planned:
                started.append(start(service, folder))
            for waited in [*started, *(running[name] for name in names if name in running)]:
                if not wait_until_ready(waited, seconds):
                    raise _not_ready(waited, seconds)
        except BaseException:
            for waited in reversed(started):
                waited.stop(folder)
            raise
        states = {name: "started" for name in missing} | {name: "yours" for name in yours}
        return [
            Shown(
                name,
                shown_uri(addresses[name]),
                states.get(name, "runs already"),
                passwords.of(name) if name not in yours else None,
            )
            for name in names
        ]


def stop_services(folder: Path, names: Sequence[str]) -> list[RunningService]:
    """Stop those of the services that run, the last started first, and return them."""
    if not (folder / FOLDER).is_dir():
        return []
    with one_at_a_time(folder):
        running = running_services(folder)
        return [running[name] for name in reversed(names) if name in running and running[name].stop(folder)]


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Two calls at once would start everything twice: the second waits for the first."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / FOLDER / "lock", timeout=START_SECONDS, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise ResourceError(
            f"another process has held the lock {lock.lock_file!r} for {START_SECONDS:.0f} seconds; wait for it, or "
            "end it"
        ) from None
    try:
        yield
    finally:
        lock.release()


def users_servers(ports: Mapping[str, int], tracking: TrackingSettings, host: str = HOST) -> dict[str, str]:
    """Servers that the user's settings name: theirs are used, and none of ours is started beside them.

    An address that is our own port's, as ``palimpsest up`` tells to set, is not the user's, except for an MLflow whose
    database nobody names.
    """
    found = {}
    prefect = os.environ.get("PREFECT_API_URL")
    if prefect and is_server(prefect) and not is_at(prefect, ports["prefect"], host):
        found["prefect"] = prefect
    store = tracking_uri(tracking)
    if is_server(store) and (is_server(tracking.uri) or not is_at(store, ports["mlflow"], host)):
        found["mlflow"] = store
    return found


def check_port(name: str, port: int, host: str = HOST) -> None:
    """``ResourceError`` where another program listens on the port, or where the machine has no such interface."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As servers do: a port whose last connections are just closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise ResourceError(f"--host {host!r}: this machine has no interface with that address") from None
            raise ResourceError(
                f"port {port}, on which {TITLES[name]} would listen, is in use ({error.strerror}); stop the program "
                f"that has it, or choose another port: make up {PORT_VARIABLES[name]}=NUMBER"
            ) from None


def _service(
    name: str,
    folder: Path,
    port: int,
    tracking: TrackingSettings,
    host: str,
    passwords: Passwords,
) -> Service:
    if name == "prefect":
        return prefect_service(port, passwords.prefect, host)
    store = tracking_uri(tracking)
    return mlflow_service(port, tracking.uri if is_server(store) else store, folder, passwords.mlflow, host)


def _not_ready(service: RunningService, seconds: float) -> ResourceError:
    what = f"does not answer after {seconds:.0f} seconds" if service.alive else "ended while it started"
    return ResourceError(
        f"{TITLES[service.name]} {what}; its output is in {service.log!r}. What this call started is stopped again; "
        "'make down' stops the rest"
    )
