"""The processes of one run, started and stopped through the supervisor, so that none of them outlives the run."""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from flows.stages import supervisor
from tasks.errors import ResourceError

SUPERVISOR_ENDED = -128
"""Status of a process whose supervisor was killed; no signal has this number."""


class Process:
    """One started process; ``wait`` gives its exit status."""

    def __init__(self, number: int) -> None:
        self.number = number
        """Number of the process in the supervisor's messages."""
        self._ended = threading.Event()
        self.pid: int | None = None
        self.status: int | None = None
        """Exit status, a negative signal number, or ``None`` while it runs."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Block until it has ended (or for ``timeout`` seconds) and return its status, or ``None``."""
        self._ended.wait(timeout)
        return self.status

    def end(self, status: int) -> None:
        """Record the exit status."""
        self.status = status
        self._ended.set()


class Processes:
    """The supervisor of one run, as seen by the run. Safe to use from several threads."""

    def __init__(self, folder: str | Path, *, inherited: Sequence[int] = (), detached: bool = False) -> None:
        """Start the supervisor with ``folder`` as its working folder; it keeps the ``inherited`` file handles open.

        ``detached``: it is no child of this process, for one whose children are killed when it ends, as Ray does.
        """
        self.mark = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._next = 0
        self._running: dict[int, Process] = {}
        self._closed = False
        # -P: the folder of the script is not searched for modules, so ours cannot be taken for others.
        self._supervisor = subprocess.Popen(
            [sys.executable, "-P", supervisor.__file__, *([supervisor.DETACHED] if detached else [])],
            cwd=folder,
            env={**child_environment(os.environ), supervisor.MARK: self.mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(handle for handle in inherited if handle >= 0),
        )
        self._listener = threading.Thread(target=self._listen, name="supervisor reports", daemon=True)
        self._listener.start()

    def prepare_dvc(self) -> None:
        """Let the supervisor import DVC now; otherwise the first DVC command waits for that."""
        self._send({"prepare": "dvc"})

    def prepare_commands(self) -> None:
        """Let the supervisor import common modules of stages' commands, so that these start in a fraction of a second.

        It takes seconds, in which nothing else is started.
        """
        self._send({"prepare": "commands"})

    def start_dvc(self, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Process:
        """Start ``dvc ARGUMENTS`` with both output streams appended to ``log``, and additions to its environment."""
        return self._start({"dvc": list(arguments), "environment": dict(environment or {})}, log)

    def start_program(self, program: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Process:
        """Start any other program, with additions to its environment."""
        return self._start({"program": list(program), "environment": dict(environment or {})}, log)

    def start_command(self, command: str, lock: Path, log: Path, environment: Mapping[str, str]) -> Process:
        """Start a stage's command as DVC would; it holds the lock of its stage until it has ended."""
        return self._start({"command": command, "lock": str(lock), "environment": dict(environment)}, log)

    def stop(self, process: Process) -> None:
        """Ask one process and its children to end, and kill the remaining ones after two seconds. Returns at once."""
        self._send({"stop": process.number})

    def close(self) -> None:
        """Stop everything and end the supervisor; returns when both are done."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._supervisor.stdin is not None:
                with suppress(BrokenPipeError):
                    self._supervisor.stdin.close()
        self._supervisor.wait()
        self._listener.join()  # until nobody reports any more

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, request: dict[str, object], log: Path) -> Process:
        with self._lock:
            self._next += 1
            process = Process(self._next)
            self._running[process.number] = process
        self._send({"start": process.number, "log": str(log), **request})
        return process

    def _send(self, message: dict[str, object]) -> None:
        with self._lock:
            if self._closed or self._supervisor.stdin is None:
                raise ResourceError("the run is being stopped: no further process is started")
            try:
                self._supervisor.stdin.write(json.dumps(message).encode() + b"\n")
                self._supervisor.stdin.flush()
            except BrokenPipeError:
                raise ResourceError(
                    "the process that starts the stages was killed; start the run again, finished stages are saved"
                ) from None

    def _listen(self) -> None:
        assert self._supervisor.stdout is not None  # it was opened as a pipe
        for line in self._supervisor.stdout:
            message = json.loads(line)
            if "started" in message:
                self._running[message["started"]].pid = message["pid"]
            else:
                self._running.pop(message["ended"]).end(message["status"])
        # The supervisor is gone. It stops everything before it ends, unless it was killed itself.
        for process in list(self._running.values()):
            if process.pid is not None:
                supervisor.signal_group(process.pid, supervisor.signal.SIGKILL)
            process.end(SUPERVISOR_ENDED)


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of stages: the commands of this Python's environment come first on ``PATH``.

    ``dvc.yaml`` calls ``palimpsest``, which must belong to this run even if the virtual environment is not activated.
    Variables of an outer DVC stage are left out.
    """
    commands = str(Path(sys.executable).parent)
    path = environment.get("PATH", os.defpath)
    kept = {name: value for name, value in environment.items() if name not in ("DVC_STAGE", "DVC_ROOT")}
    return {**kept, "PATH": path if path.split(os.pathsep)[0] == commands else f"{commands}{os.pathsep}{path}"}
