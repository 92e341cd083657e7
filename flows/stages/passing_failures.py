"""Which failures of a stage can pass, so that it is tried again: locks, the network, memory.

Judged by the stage's exit status and the one line of our own commands. A user error (status 1) and a defect (70) do not
pass, except where that line names one of the causes below.
"""

import re
import signal

_LINES = (
    # Locks.
    "another process is making",
    "another process has held the lock",
    # The tracking store: a server that restarts, a database that is busy.
    r"the MLflow store .* cannot be used \((?!ImportError|ModuleNotFoundError|UnsupportedModelRegistry)",
    # A worker or rank that the system killed, as it does when memory runs out.
    r"(the worker on|rank \d+ of) .* (was killed|was ended) by SIGKILL",
    "the GPU has too little memory",
)
_ERRORS = (
    "OutOfMemoryError",
    "MemoryError",
    "OperationalError",
    "BlockingIOError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "ConnectTimeout",
    "ConnectError",
    "ReadTimeout",
    "ReadError",
    "RemoteDisconnected",
    "TimeoutError",
    "gaierror",
)
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


def may_pass(text: str, status: int) -> bool:
    """Whether the failure of a stage can pass.

    ``text`` is what DVC and the stage's command printed, ``status`` DVC's exit status. What a command printed is never
    quoted, and is not looked at beyond its last line of our own.
    """
    if status in _KILLED:
        return True
    lines = text.splitlines()
    ended = None
    for line in reversed(lines):
        found = re.match(r"ERROR: .*failed to run: .*, exited with (-?\d+)$", line)
        if found:
            ended = int(found[1])
            break
    if ended in _KILLED:
        return True
    for line in reversed(lines):
        if line.startswith("palimpsest: internal error: "):
            kind = line.removeprefix("palimpsest: internal error: ").split(" ", 1)[0]
            return kind.rsplit(".", 1)[-1] in _ERRORS
        if line.startswith("palimpsest: error: "):
            return any(re.search(pattern, line) for pattern in _LINES)
    if ended is not None:
        # Some other command: its status says nothing of this kind.
        return False
    return any(line.startswith("ERROR: ") and any(part in line for part in _OF_DVC) for line in lines)
