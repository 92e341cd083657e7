"""One stage, run through DVC as ``dvc repro --single-item STAGE``, and its outcome.

DVC decides whether the stage's command runs, whether its outputs come out of the cache, or whether nothing changed.
"""

import os
import re
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from flows.checkout.run_lock import STATE_FOLDER
from flows.stages.processes import SERVER_ENDED, Processes
from flows.stages.warm_server import DVC
from tasks.errors import PASSING, PalimpsestError

FULL_DISK_BYTES = 1 << 16
"""Free space below which the reason of a failure is a full disk."""
STOPPED = "the run was stopped"
INTERRUPTED = "stopped before it had finished"
UNFINISHED = "did not finish"
"""End of the reason of a stage that was skipped since stages before it failed."""


class State(StrEnum):
    """End state of a stage."""

    RAN = "ran"
    RESTORED = "restored"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"


UNDONE = (State.FAILED, State.SKIPPED)
"""States of stages that are not done."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one stage."""

    name: str
    state: State
    seconds: float = 0.0
    """Wall time of the stage, with DVC's own part."""
    error: str | None = None
    """One line with the error of a failed or skipped stage."""
    log: str | None = None
    """Path of the output of DVC and the stage's command, relative to the checkout."""
    may_pass: bool = False
    """Whether the failure may be temporary, so that a retry may help."""
    attempts: int = 1
    """Number of tries."""


def run_stage(
    name: str, processes: Processes, limit: float | None = None, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run one stage and wait for it, at most ``limit`` seconds; several threads may run different stages at once.

    Every failure is an outcome. Of the stage's own output only the error line of our commands is quoted.
    """
    folder, log = processes.folder, Path(STATE_FOLDER) / "logs" / log_name(name)
    (folder / log).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / log).unlink(missing_ok=True)
    started = time.monotonic()

    def failed(error: str, *, may_pass: bool = False) -> Outcome:
        return Outcome(name, State.FAILED, time.monotonic() - started, error, str(log), may_pass)

    try:
        # --wait-for-lock: without it DVC gives up after three seconds, also when the command has just finished and its
        # result is to be recorded.
        command = [DVC, "--wait-for-lock", "repro", "--single-item", name]
        status = processes.run(command, folder / log, environment, limit)
    except PalimpsestError as error:
        return failed(str(error))
    except OSError as error:
        return failed(f"its log cannot be written ({error.strerror}); free some space")
    if status is None:
        return Outcome(name, State.SKIPPED, error=STOPPED)
    text = _read(folder / log)
    if status == 0:
        state = state_of(text, name)
        if state is None:
            return failed("DVC did not say what it did with the stage")
        return Outcome(name, state, time.monotonic() - started, log=str(log))
    if processes.stopped.is_set():
        return failed(INTERRUPTED)
    if limit is not None and time.monotonic() - started >= limit:
        return failed(f"it was stopped after {limit:g} seconds, its limit; raise it under resources.time_limits")
    if status == SERVER_ENDED:
        return failed("its process was killed", may_pass=True)
    if shutil.disk_usage(folder).free < FULL_DISK_BYTES:
        # On a full disk the log lacks the reason.
        return failed("the disk is full; free some space")
    return failed(reason_of(text, status, name), may_pass=may_pass(text, status))


def log_name(stage: str) -> str:
    """The file name of a stage's log: its name with other characters than letters, digits, ``@._-`` replaced."""
    return re.sub(r"[^\w@.-]", "_", stage) + ".log"


def state_of(text: str, name: str) -> State | None:
    """The state from DVC 3.67's first line on a stage: the command's own output follows later."""
    said: dict[str, State] = {
        f"Stage '{name}' didn't change, skipping": State.UNCHANGED,
        f"'{name}' didn't change, skipping": State.UNCHANGED,
        f"Stage '{name}' is cached - skipping run, checking out outputs": State.RESTORED,
        f"Running stage '{name}':": State.RAN,
        f"Verifying data sources in stage: '{name}'": State.RAN,
        f"Verifying outputs in frozen stage: '{name}'": State.RAN,
    }
    return next((said[line] for line in text.splitlines() if line in said), None)


_ENDED = re.compile(r"^ERROR: .*failed to run: .*, exited with (-?\d+)$", re.MULTILINE)
_OURS = re.compile(r"^palimpsest: (?:error: (.*)|(internal error.*))", re.MULTILINE)
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
_LOCKED = re.compile(r"^ERROR: .*(Unable to acquire lock|is busy, it is being blocked by)", re.MULTILINE)


def may_pass(text: str, status: int) -> bool:
    """Whether the failure of a stage may be temporary.

    A command says so by its exit status ``PASSING``. A kill, as when memory runs out, may pass too, and so may a lock
    of another DVC process. ``text`` is the output of DVC, ``status`` DVC's exit status.
    """
    ended = _status_of_command(text)
    if ended is None:
        return status in _KILLED or _LOCKED.search(text) is not None
    return ended in (PASSING, *_KILLED)


def _status_of_command(text: str) -> int | None:
    """The exit status of the stage's command in DVC's output."""
    codes = _ENDED.findall(text)
    return int(codes[-1]) if codes else None


def reason_of(text: str, status: int, name: str) -> str:
    """One line on why a stage failed, from the end of its output.

    Our commands end with ``palimpsest: error: …``, which never quotes a corpus. Of any other command only the status is
    reported, since its messages may quote private text; DVC's own errors name paths only.
    """
    if ours := _OURS.findall(text):
        return str(ours[-1][0] or ours[-1][1])
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
    errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
    return errors[-1].removeprefix(f"failed to reproduce '{name}': ") if errors else f"DVC ended with status {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read(log: Path) -> str:
    """The first and the last 64 KiB of the output, which contain all relevant lines."""
    limit = 1 << 16
    with open(log, "rb") as stream:
        head = stream.read(limit)
        if (size := os.fstat(stream.fileno()).st_size) > limit:
            stream.seek(max(limit, size - limit))
            head += b"\n" + stream.read()
    return head.decode("utf-8", "replace")
