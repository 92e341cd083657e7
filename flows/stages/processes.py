"""The processes of one run, started and stopped through a warm server, so that none of them outlives the run."""

import os
import select
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from flows.checkout.run_lock import STATE_FOLDER
from flows.stages import asking, warm_server
from tasks.errors import ResourceError

SERVER_ENDED = -128
"""Status of a process whose attendant was killed; no signal has this number."""


class Processes:
    """One warm server, as seen by its run. Safe to use from several threads."""

    def __init__(self, folder: str | Path, *, inherited: Sequence[int] = ()) -> None:
        """Start the server with ``folder`` as its working folder; it keeps the ``inherited`` file handles open."""
        self.folder = Path(folder).absolute()
        self.stopped = threading.Event()
        """Whether ``stop`` was called, so that ``run`` starts nothing."""
        self._running: set[socket.socket] = set()
        # A folder of its own, which no other user can enter.
        self.address = f"{tempfile.mkdtemp(prefix='palimpsest-')}/socket"
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(self.address)
            door.listen(64)
            # -P: the working folder is not searched for modules, so its own cannot be taken for others.
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-m", warm_server.__name__, str(door.fileno())],
                cwd=folder,
                env=child_environment(os.environ),
                stdin=subprocess.PIPE,
                start_new_session=True,
                pass_fds=(door.fileno(), *inherited),
            )

    def start(
        self,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        inherited: Sequence[int] = (),
    ) -> socket.socket:
        """Start ``dvc …`` or another program with both output streams appended to ``log``, additions to its
        environment, and file handles that it keeps open. Its line is that of ``flows.stages.asking``."""
        whole = child_environment(os.environ) | dict(environment or {})
        files = [os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)]
        try:
            streams = [files[0], files[1], files[1], *inherited]
            return asking.ask(self.address, arguments, str(self.folder), whole, streams)
        except OSError:
            raise ResourceError(
                "the process that starts the stages has ended; start the run again, finished stages are saved"
            ) from None
        finally:
            for file in files:
                os.close(file)

    def run(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None, limit: float | None
    ) -> int | None:
        """Start a program and return its exit status; ``None`` after ``stop``. It is stopped after ``limit`` seconds,
        and by ``stop``."""
        if self.stopped.is_set():
            return None
        line = self.start(arguments, log, environment)
        self._running.add(line)
        if self.stopped.is_set() or not select.select([line], [], [], limit)[0]:
            asking.hang_up(line)
        status = asking.status_from(line)
        self._running.discard(line)
        return SERVER_ENDED if status is None else status

    def stop(self) -> None:
        """Stop within seconds what ``run`` has started, and start no more; unfinished work is lost."""
        self.stopped.set()
        for line in list(self._running):
            asking.hang_up(line)

    def close(self) -> None:
        """Stop everything and end the server; returns when both are done."""
        assert self._server.stdin is not None  # it was opened as a pipe
        self._server.stdin.close()
        self._server.wait()

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def asking_shell(folder: Path, address: str) -> dict[str, str]:
    """The environment in which DVC has the commands of stages run by the server at this address.

    DVC starts commands by the shell that ``SHELL`` names. It is a script with the name of the user's own, since DVC
    chooses options by that name.
    """
    shell = os.environ.get("SHELL") or "/bin/sh"
    script = folder.absolute() / STATE_FOLDER / "shell" / os.path.basename(shell)
    script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    ask = shlex.join([sys.executable, "-IS", asking.__file__, address, shell])
    lines = f'SHELL={shlex.quote(shell)}\n[ -z "$DVC_STAGE" ] || exec {ask} "$@"\nexec "$SHELL" "$@"\n'
    script.write_text(f"#!/bin/sh\n{lines}", encoding="utf-8")
    script.chmod(0o700)
    return {"SHELL": str(script)}


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of stages: the commands of this Python's environment come first on ``PATH``.

    ``dvc.yaml`` calls ``palimpsest``, which must belong to this run even if the virtual environment is not activated.
    Variables of an outer DVC stage are left out.
    """
    commands = str(Path(sys.executable).parent)
    path = environment.get("PATH", os.defpath)
    kept = {name: value for name, value in environment.items() if name not in ("DVC_STAGE", "DVC_ROOT")}
    return {**kept, "PATH": path if path.split(os.pathsep)[0] == commands else f"{commands}{os.pathsep}{path}"}
