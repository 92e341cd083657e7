"""A PostgreSQL server of its own for a test, on a free port of the loopback interface."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dashboards.services.services import free_port

USER = "nobody"
"""PostgreSQL refuses to run as root; root runs it as this user."""


class PostgresServer:
    """Its port, and a way to make databases."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def make_database(self, name: str) -> str:
        """The part of an address behind the driver's name."""
        self.run("createdb", "-h", str(self.folder), "-p", str(self.port), "-U", "palimpsest", name)
        return f"//palimpsest@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        data, log = str(self.folder / "data"), str(self.folder / "log")
        self.run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    @staticmethod
    def run(*command: str) -> None:
        other = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
        done = subprocess.run([*other, *command], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Skips the test where PostgreSQL, or a way to run it, is missing."""
    missing = [name for name in ("initdb", "pg_ctl", "createdb") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"PostgreSQL is not installed ({', '.join(missing)} not found)")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL refuses to run as root, and runuser is not there")
    # A short path, which a socket's must be, in a folder that the other user may enter.
    folder = Path(tempfile.mkdtemp(prefix="palimpsest-postgres-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, pwd.getpwnam(USER).pw_uid, -1)
        server = PostgresServer(folder, free_port())
        server.run("initdb", "-D", str(folder / "data"), "-U", "palimpsest", "-A", "trust", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
