"""The parent of every process of a run: starts stages, reports how they end, and takes them along when the run dies.

Runs as a process of its own, in a session of its own, and imports none of our packages but in a fork: ``python -P
supervisor.py``.
Requests come as JSON lines on standard input, reports leave as JSON lines on standard output:

    {"start": 7, "dvc": ["repro", "--single-item", "mask@chat"], "log": "…"}      one DVC command
    {"start": 8, "program": ["python", "-m", "prefect", …], "log": "…"}           any other program
    {"start": 9, "command": "palimpsest fill …", "lock": "…", "log": "…"}         a stage's command, on a cluster's node
    {"prepare": "dvc"}                                                            import DVC before it is needed
    {"prepare": "commands"}                                                       and what many stages' commands import
    {"stop": 7}   {"stop": null}                                                  one of them, or all
    {"started": 7, "pid": 4711}   {"ended": 7, "status": 0}                       a negative status is a signal

The end of standard input means that the run is gone, however it died: everything is stopped, and then the supervisor
ends. To start a DVC command it forks itself with DVC already imported, which saves a third of a second of
processor time per stage against a new interpreter.
"""

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import threading
import time
import types
from typing import Any, NoReturn

MARK = "PALIMPSEST_RUN"
"""Environment variable that every process of a run inherits, with the run's own value."""
GRACE_SECONDS = 2.0
"""Seconds for a stopped process before SIGKILL; DVC has them once more after its command was killed."""
DETACHED = "--detached"
"""Argument to start it without a parent."""
WARM = "warm_commands"
"""Module in this folder that starts commands of stages in forks."""
CLUSTER = "PALIMPSEST_CLUSTER"
"""Environment variable of a stage whose command runs on a cluster's node: the socket of the leading run."""
PATIENCE_SECONDS = 30.0
"""Seconds for an earlier run's processes of a stage to end."""
LOCKED = 75
"""Status of a command that was not started, since they had not ended."""
NAME_IN_LOCKS = "dvc-under-palimpsest"
"""Name of the supervisor's DVC commands in DVC's own list of locks."""


USED_BY_DVC = (
    "configobj dulwich.ignore dvc.cachemgr dvc.data_cloud dvc.dependency dvc.dirs dvc.lock dvc.repo.artifacts "
    "dvc.repo.datasets dvc.repo.index dvc.repo.metrics dvc.repo.open_repo dvc.repo.params dvc.repo.plots "
    "dvc.repo.reproduce dvc.repo.stage dvc.rwlock dvc.scm dvc.stage.cache dvc.stage.run dvc.utils.strictyaml "
    "dvc_data.hashfile.db.local fsspec.implementations.memory pyparsing ruamel.yaml scmrepo.git"
).split()
"""Modules that ``dvc repro`` imports only when it runs; one that a later DVC lacks fails the test of forking."""


class Supervisor:
    """Processes of one run, each the leader of a session and process group of its own."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # process id -> number of the request
        self._stop_signal: dict[int, int] = {}  # process id -> what asks it to end
        self._gives_locks_back: set[int] = set()  # process ids of DVC whose commands have not been killed yet
        self._kill_at: dict[int, float] = {}  # process id -> monotonic time of SIGKILL
        self._buffer = b""
        self._open = True
        self._terminated = False
        self._preloaded = False
        self._wake_read, self._wake_write = os.pipe()

    def serve(self) -> None:
        """Work until the run is gone and every process has ended."""
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminate)
        while self._open or self._numbers:
            sources = [self._wake_read, *([0] if self._open else [])]
            ready, _, _ = select.select(sources, [], [], self._seconds_to_next_kill())
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            if self._terminated:
                self._close()
            elif 0 in ready:
                self._read_requests()
            self._kill_overdue()
            self._collect()
        kill_marked()

    def _read_requests(self) -> None:
        chunk = os.read(0, 65536)
        if not chunk:
            self._close()
            return
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "start" in request:
                self._start(request)
            elif "stop" in request:
                self._stop(request["stop"])
            else:
                self._preload()
                if request["prepare"] == "commands":
                    preload_libraries()

    def _preload(self) -> None:
        if not self._preloaded:
            self._preloaded = True
            preload()

    def _start(self, request: dict[str, Any]) -> None:
        if "dvc" in request:
            self._preload()
        pid = os.fork()
        if pid == 0:
            become(request, [self._wake_read, self._wake_write])
        self._numbers[pid] = request["start"]
        # SIGINT lets DVC release its locks and a stage remove its unfinished files.
        self._stop_signal[pid] = signal.SIGTERM if "program" in request else signal.SIGINT
        if "dvc" in request:
            self._gives_locks_back.add(pid)
        report({"started": request["start"], "pid": pid})

    def _stop(self, number: int | None) -> None:
        for pid, candidate in self._numbers.items():
            if number in (None, candidate) and pid not in self._kill_at:
                signal_group(pid, self._stop_signal[pid])
                self._kill_at[pid] = time.monotonic() + GRACE_SECONDS

    def _terminate(self, *_: object) -> None:
        self._terminated = True

    def _close(self) -> None:
        self._open = False
        self._stop(None)

    def _seconds_to_next_kill(self) -> float | None:
        if not self._kill_at:
            return None
        return max(0.0, min(self._kill_at.values()) - time.monotonic())

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for pid, deadline in self._kill_at.items():
            if deadline <= now:
                if pid in self._gives_locks_back:
                    self._gives_locks_back.remove(pid)
                    kill_descendants(pid)
                else:
                    signal_group(pid, signal.SIGKILL)
                self._kill_at[pid] = now + GRACE_SECONDS

    def _collect(self) -> None:
        for pid in list(self._numbers):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            # While the leader is a zombie its group number cannot be another's: end its remaining processes.
            signal_group(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            self._kill_at.pop(pid, None)
            del self._stop_signal[pid]
            self._gives_locks_back.discard(pid)
            report({"ended": self._numbers.pop(pid), "status": os.waitstatus_to_exitcode(status)})


def become(request: dict[str, Any], close: list[int]) -> NoReturn:
    """Set up the forked child, with a session of its own and standard streams to the log, and run the command."""
    status = 70
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        # A stop request ends the stage's command, which does not inherit this handler; DVC itself records finished
        # work, or releases its locks, and then ends on its own.
        signal.signal(signal.SIGINT, lambda *_: None)
        for handle in close:
            os.close(handle)
        silence = os.open(os.devnull, os.O_RDONLY)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(silence, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(silence)
        os.close(log)
        os.environ.update(request.get("environment", {}))
        if "program" in request:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.umask(0o077)
            os.execvp(request["program"][0], request["program"])
        status = command(request) if "command" in request else dvc(request["dvc"])
    except BaseException as error:  # nothing may return into the supervisor's loop
        os.write(2, f"ERROR: {type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def command(request: dict[str, Any]) -> int:
    """Run the command of a stage in this process, with the lock; return ``LOCKED`` if another process holds it.

    The holder is left from an earlier run on some machine: it has seconds to end.
    """
    import fcntl

    lock = os.open(request["lock"], os.O_WRONLY | os.O_CREAT, 0o600)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        if time.monotonic() > deadline:
            return LOCKED
        time.sleep(0.2)
    arguments = sibling(WARM).forkable(request["command"]) if WARM in sys.modules else None
    if arguments is not None:
        sibling(WARM).become(arguments, os.getcwd(), dict(os.environ), keep=lock)
    os.set_inheritable(lock, True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(0o077)
    os.execv("/bin/sh", ["sh", "-c", request["command"]])


def dvc(arguments: list[str]) -> int:
    """Run one DVC command in this process; return its exit status."""
    sys.argv = [NAME_IN_LOCKS, *arguments]
    stage = arguments[-1].rsplit(":", 1)[-1]
    if "--single-item" in arguments and not stage.endswith(".dvc"):
        sibling("single_lock_entry").use_entries(stage)
    if address := os.environ.get(CLUSTER):
        sibling("remote_commands").send_commands(address)
    elif WARM in sys.modules:
        sibling(WARM).start_commands_in_forks()
    # DVC's copies, also of private files, get the modes that the umask leaves.
    os.umask(0o077)
    from dvc.cli import main

    return int(main(arguments) or 0)


def preload() -> None:
    """Import the modules of every DVC command, once, and check that forking stays safe."""
    from dvc.cli.parser import get_main_parser

    get_main_parser()
    for name in USED_BY_DVC:
        importlib.import_module(name)
    sibling("single_lock_entry")
    check_forking()


def preload_libraries() -> None:
    """Import the modules of many stages' commands, once; from then on these commands are forks too."""
    sibling(WARM).import_libraries()
    check_forking()


def check_forking() -> None:
    """Make sure that forking is safe, and that children do not copy the pages that they share."""
    if threading.active_count() != 1:
        raise SystemExit("a thread is running: forking would not be safe")
    gc.freeze()  # the garbage collector writes into the objects that it looks at


def sibling(name: str) -> types.ModuleType:
    """A module in this folder, loaded by its path: modules are not searched there."""
    if name not in sys.modules:
        path = os.path.join(os.path.dirname(__file__), f"{name}.py")
        specification = importlib.util.spec_from_file_location(name, path)
        assert specification is not None  # the file is there
        assert specification.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def kill_marked() -> None:
    """Kill processes outside their process group that have the mark of this run (a daemon of a daemon)."""
    value = os.environ.get(MARK)
    if not value:
        return
    import psutil

    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == value:
                process.kill()
        except psutil.Error:
            continue


def kill_descendants(pid: int) -> None:
    """Kill the descendants of a process, not itself.

    A stage's command may ignore SIGINT; bash does, while it waits for a program that then ends as usual.
    """
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group of a leader; one that has not made its group yet gets it directly."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
            return
        except ProcessLookupError:
            continue


def report(message: dict[str, Any]) -> None:
    """Report to the run; if it is gone, standard input shows it."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Stages have private text in memory: a crash must not write it to the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if DETACHED in sys.argv and os.fork():
        os._exit(0)
    Supervisor().serve()
