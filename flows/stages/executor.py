"""One stage, run through DVC as ``dvc repro --single-item STAGE``, and what became of it.

DVC decides whether the stage's command runs, whether its outputs come out of the cache, or whether nothing changed.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from flows.checkout.run_lock import STATE_FOLDER
from flows.stages.processes import SUPERVISOR_ENDED, Process, Processes
from tasks.errors import PalimpsestError
from tasks.results.origin.lock_entries import read_lock


@cache
def cache_folder(folder: Path) -> Path:
    """Where DVC keeps the files of a checkout by their hashes, as its settings say."""
    from dvc.repo import Repo

    with Repo(str(folder)) as repository:
        return Path(repository.cache.local.path)


def remove_damaged(folder: Path, stage: str, cached: Path) -> bool:
    """Remove the outputs of a stage whose content is not what ``dvc.lock`` says, and their copies in the cache.

    ``cached``: the ``cache_folder``. Whether there was any: then the stage has to run. Reads each file of its outputs
    once; what DVC does not cache is left alone.
    """
    damaged = False
    for out in read_lock(folder).get(stage, {}).get("outs", ()):
        if out.get("hash") != "md5":
            continue
        path, digest = folder / out["path"], out["md5"]
        files = {path: digest}
        if digest.endswith(".dir"):
            listing = _copy(cached, digest)
            if _hash(listing) != digest.removesuffix(".dir"):
                # What it names cannot be trusted, so nothing of the folder can.
                damaged = True
                shutil.rmtree(path)
                listing.unlink()
                continue
            files = {path / entry["relpath"]: entry["md5"] for entry in json.loads(listing.read_text("utf-8"))}
        for file, expected in files.items():
            if _hash(file) != expected:
                damaged = True
                file.unlink()
                _copy(cached, expected).unlink()
    return damaged


def _copy(cached: Path, digest: str) -> Path:
    return cached / digest[:2] / digest[2:]


def _hash(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()


_LINES = (
    # Locks.
    "another process is making",
    "another process has held the lock",
    # The tracking store: a server that restarts, a database that is busy.
    r"the MLflow store .* cannot be used \((?!ImportError|ModuleNotFoundError|UnsupportedModelRegistry)",
    # A worker or rank that the system killed, as it does when memory runs out.
    r"(the worker on|rank \d+ of) .* (was killed|was ended) by SIGKILL",
    "the GPU has too little memory",
    "the node that ran it was lost",
)
_ERRORS = (
    "OutOfMemoryError MemoryError OperationalError BlockingIOError ConnectionError ConnectionRefusedError "
    "ConnectionResetError ConnectTimeout ConnectError ReadTimeout ReadError RemoteDisconnected TimeoutError gaierror"
).split()
"""Classes that a defect's line names: memory, a busy SQLite database, the network."""
_OF_DVC = (
    "Unable to acquire lock",
    "is busy, it is being blocked by",
    "Connection refused",
    "Connection reset",
    "timed out",
    "Temporary failure in name resolution",
    "Cannot allocate memory",
)
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


_ENDED = re.compile(r"^ERROR: .*failed to run: .*, exited with (-?\d+)$", re.MULTILINE)
_OURS = re.compile(r"^palimpsest: (?:internal error: (\S*)|error: .*)", re.MULTILINE)


def may_pass(text: str, status: int) -> bool:
    """Whether the failure of a stage can pass: locks, the network, memory.

    ``text`` is what DVC and the stage's command printed, ``status`` DVC's exit status. What a command printed is never
    quoted, and is not looked at beyond its last line of our own. A user error (status 1) and a defect (70) do not pass,
    except where that line names one of the causes above.
    """
    ended = _status_of_command(text)
    if status in _KILLED or ended in _KILLED:
        return True
    if ours := list(_OURS.finditer(text)):
        kind = ours[-1][1]
        if kind is not None:
            return kind.rsplit(".", 1)[-1] in _ERRORS
        return any(re.search(pattern, ours[-1][0]) for pattern in _LINES)
    if ended is not None:
        # Some other command: its status says nothing of this kind.
        return False
    return any(line.startswith("ERROR: ") and any(part in line for part in _OF_DVC) for line in text.splitlines())


def _status_of_command(text: str) -> int | None:
    """What DVC says that the stage's command ended with."""
    codes = _ENDED.findall(text)
    return int(codes[-1]) if codes else None


FULL_DISK_BYTES = 1 << 16
"""Free space below which a failed stage is said to have failed for lack of it."""
LOCK_PATIENCE_SECONDS = 120.0
"""How long a stage is tried again while another DVC process holds a lock that it needs."""


STOPPED = "the run was stopped"
INTERRUPTED = "stopped before it had finished"
UNFINISHED = "did not finish"
"""End of the reason of a stage that was skipped since others before it failed."""


class State(StrEnum):
    """How a stage ended."""

    RAN = "ran"
    RESTORED = "restored"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one stage."""

    name: str
    state: State
    seconds: float = 0.0
    """Wall time of the stage, with DVC's own part."""
    error: str | None = None
    """One line for a failed or skipped stage: what went wrong."""
    log: str | None = None
    """Path of what DVC and the stage's command printed, relative to the checkout."""
    may_pass: bool = False
    """Whether the failure is of a kind that can pass, so that trying again may help."""
    attempts: int = 1
    """How often it was tried."""

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "name": self.name,
            "state": self.state.value,
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "log": self.log,
            "attempts": self.attempts,
        }


@dataclass
class Finish:
    """How a run ended."""

    outcomes: dict[str, Outcome]
    signal: int | None = None
    """The signal that stopped it."""
    abandoned: bool = False
    """Whether threads of Prefect were left behind, so that the process must not wait for them."""
    cancelled: bool = False
    """Whether somebody cancelled it in Prefect."""
    warning: str | None = None
    """What a reader must know of a run whose stages are all done."""


Observer = Callable[[str, Outcome | None], None]
"""Told when a stage starts (with ``None``) and when it has ended (with its outcome)."""


class Executor:
    """Runs stages of one checkout; several threads may run different stages at once."""

    def __init__(
        self,
        processes: Processes,
        folder: str | Path,
        time_limit: Callable[[str], float | None] = lambda _name: None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``time_limit`` gives the seconds that a stage may take, by its name; ``None`` where there is no limit.
        ``environment`` is read when a stage starts and added to its own."""
        self._environment = environment if environment is not None else {}
        self._processes = processes
        self._time_limit = time_limit
        self._folder = Path(folder)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._running: set[Process] = set()
        self._logs = self._folder / STATE_FOLDER / "logs"
        self._logs.mkdir(parents=True, exist_ok=True, mode=0o700)

    def stop(self) -> None:
        """Stop all running stages within seconds and start no other; what they had not finished is not kept."""
        with self._lock:
            self._stopped.set()
            for process in self._running:
                self._processes.stop(process)

    def run(self, name: str) -> Outcome:
        """Run one stage and wait for it.

        Every way to fail is an outcome. Nothing of the stage's own output is quoted but the one line that our
        commands print for an error.
        """
        started = time.monotonic()
        log = self._logs / log_name(name)
        log.unlink(missing_ok=True)
        limit = self._time_limit(name)
        deadline = None if limit is None else started + limit
        pause = 0.25
        while True:
            offset = log.stat().st_size if log.exists() else 0
            try:
                status = self._reproduce(name, log, deadline)
            except PalimpsestError as error:
                return self._failed(name, started, str(error), None)
            if status is None:
                return Outcome(name, State.SKIPPED, time.monotonic() - started, STOPPED)
            text = _read(log, offset)
            if status == 0:
                state = state_of(text, name)
                if state is None:
                    return self._failed(name, started, "DVC did not say what it did with the stage", log)
                if state is State.RESTORED and self._restored_damage(name):
                    continue
                return Outcome(name, state, time.monotonic() - started, log=self._relative(log))
            if self._stopped.is_set():
                return self._failed(name, started, INTERRUPTED, log)
            if deadline is not None and time.monotonic() >= deadline:
                reason = f"it was stopped after {limit:g} seconds, its limit; raise it under resources.time_limits"
                return self._failed(name, started, reason, log)
            if status == SUPERVISOR_ENDED:
                return self._failed(name, started, "the process that starts the stages was killed", log)
            if not lock_is_held(text, name) or time.monotonic() - started > LOCK_PATIENCE_SECONDS:
                full = shutil.disk_usage(self._folder).free < FULL_DISK_BYTES
                # On a full disk the log lacks what would tell the reason.
                reason = "the disk is full; free some space" if full else reason_of(text, status, name)
                return self._failed(name, started, reason, log, may_pass=not full and may_pass(text, status))
            self._stopped.wait(pause)
            pause = min(2 * pause, 8.0)

    def _restored_damage(self, name: str) -> bool:
        """Whether what came out of DVC's cache was damaged; it is removed then, there and here."""
        with self._lock:
            cached = cache_folder(self._folder)
        return remove_damaged(self._folder, name, cached)

    def _reproduce(self, name: str, log: Path, deadline: float | None) -> int | None:
        """Exit status of DVC, or ``None`` where the run is being stopped; stops it at the deadline."""
        with self._lock:
            if self._stopped.is_set():
                return None
            # --wait-for-lock: without it DVC gives up after three seconds, also when the command has just finished and
            # its result is to be recorded.
            process = self._processes.start_dvc(
                ["--wait-for-lock", "repro", "--single-item", name], log, self._environment
            )
            self._running.add(process)
        try:
            if deadline is not None and process.wait(max(0.0, deadline - time.monotonic())) is None:
                self._processes.stop(process)
            return process.wait()
        finally:
            with self._lock:
                self._running.remove(process)

    def _failed(self, name: str, started: float, error: str, log: Path | None, *, may_pass: bool = False) -> Outcome:
        seconds = time.monotonic() - started
        return Outcome(name, State.FAILED, seconds, error, self._relative(log) if log else None, may_pass)

    def _relative(self, log: Path) -> str:
        return str(log.relative_to(self._folder))


def log_name(stage: str) -> str:
    """File name of a stage's log: its name with other characters than letters, digits, ``@._-`` replaced."""
    return re.sub(r"[^\w@.-]", "_", stage) + ".log"


def state_of(text: str, name: str) -> State | None:
    """What DVC 3.67 says it did with a stage, in the first such line: the command's own output follows later."""
    said: dict[str, State] = {
        f"Stage '{name}' didn't change, skipping": State.UNCHANGED,
        f"'{name}' didn't change, skipping": State.UNCHANGED,
        f"Stage '{name}' is cached - skipping run, checking out outputs": State.RESTORED,
        f"Running stage '{name}':": State.RAN,
        f"Verifying data sources in stage: '{name}'": State.RAN,
        f"Verifying outputs in frozen stage: '{name}'": State.RAN,
    }
    for line in text.splitlines():
        if line in said:
            return said[line]
    return None


def lock_is_held(text: str, name: str) -> bool:
    """Whether DVC gave up because another process holds a lock, before it had begun with the stage."""
    if state_of(text, name) is State.RAN:
        return False
    errors = [line for line in text.splitlines() if line.startswith("ERROR: ")]
    return any("Unable to acquire lock" in line or "is busy, it is being blocked by" in line for line in errors)


def reason_of(text: str, status: int, name: str) -> str:
    """One line that says why a stage failed, from the end of what it printed.

    Our commands end with ``palimpsest: error: …``, which never quotes a corpus. Of any other command only the status is
    told, since its messages may quote private text; DVC's own errors name paths only.
    """
    lines = text.splitlines()
    for line in reversed(lines):
        found = re.match(r"palimpsest: (error: )?(.*)", line)
        if found and (found[1] or found[2].startswith("internal error")):
            return found[2]
    if status < 0:
        return f"DVC was killed by {_signal_name(-status)}"
    code = _status_of_command(text)
    if code in _KILLED:
        return (
            "its command was killed (SIGKILL), as the system does when memory runs out; lower "
            "resources.parallel_stages, or take smaller models"
        )
    if code is not None:
        return (
            f"its command was killed by {_signal_name(-code)}" if code < 0 else f"its command ended with status {code}"
        )
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return errors[-1].removeprefix(f"failed to reproduce '{name}': ") if errors else f"DVC ended with status {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read(log: Path, offset: int) -> str:
    """What was printed since ``offset``: the first and the last 64 KiB, which hold all that is looked for."""
    limit = 1 << 16
    try:
        with open(log, "rb") as stream:
            stream.seek(offset)
            head = stream.read(limit)
            size = os.fstat(stream.fileno()).st_size
            if size > stream.tell():
                stream.seek(max(stream.tell(), size - limit))
                head += b"\n" + stream.read(limit)
            return head.decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
