"""A server that imports DVC and the libraries of stages once, and runs commands in forks of itself.

It replaces no function of a library: DVC starts commands by the shell that ``SHELL`` names, and during a run that is a
script which asks this server (``flows.stages.processes``). An import takes two to six seconds of processor time, for
many stages as long as their work.

``python -P -m flows.stages.warm_server DOOR``: requests (``flows.stages.asking``) come through the listening socket
with the number ``DOOR``. Each has an attendant: a process that starts the command, waits for it, and ends all that it
has started. It stops the command if the asking side hangs up. The end of standard input means that the run is gone,
however it died: the attendants stop their commands, and the server ends.
"""

import contextlib
import ctypes
import gc
import importlib
import logging
import os
import re
import resource
import select
import shutil
import signal
import socket
import sys
import threading
import time
import types
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import psutil

from flows.stages.asking import NUMBER, receive

DVC = "dvc"
GRACE_SECONDS = 2.0
"""Seconds for a stopped command until SIGKILL of its children, and then of itself: DVC releases its locks."""
_LOOK_SECONDS = 0.02
"""Seconds between looks whether a command has ended."""
OF_DVC = (
    "configobj dulwich.ignore dvc.cachemgr dvc.data_cloud dvc.dependency dvc.dirs dvc.lock dvc.repo.artifacts "
    "dvc.repo.datasets dvc.repo.index dvc.repo.metrics dvc.repo.open_repo dvc.repo.params dvc.repo.plots "
    "dvc.repo.reproduce dvc.repo.stage dvc.rwlock dvc.scm dvc.stage.cache dvc.stage.run dvc.utils.strictyaml "
    "dvc_data.hashfile.db.local fsspec.implementations.memory networkx pyparsing ruamel.yaml scmrepo.git"
).split()
"""Modules that ``dvc repro`` imports only when it runs."""
OF_COMMANDS = (
    "torch lightning.pytorch safetensors.torch transformers transformers.models.bert.modeling_bert spacy tqdm mlflow "
    "mlflow.store.tracking.sqlalchemy_store tasks.audit.text_attacks tasks.audit.twin tasks.filling.filled_corpus "
    "tasks.filling.masked_lm.weighing tasks.language_model.divided_model tasks.language_model.evaluation.perplexity "
    "tasks.language_model.training tasks.language_model.transformer.scoring tasks.parameters.parameter_file "
    "tasks.speech.fusion.fusion_weights"
).split()
"""Modules that commands import only when they run."""
HEAVY = (
    "adapt audit compare-unlearning encode-speech examples fill fluency fuse perplexity pretrain rescore train-filler "
    "tune-filler tune-fusion"
).split()
"""Commands that always import PyTorch."""
_PROGRAM, _WORD = "palimpsest", "[A-Za-z0-9_./=,:@+-]"
_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36
"""Of Linux's ``prctl``."""
_Files = dict[str, tuple[int, int, int]]


def serve(door: socket.socket) -> None:
    """Work until the run is gone, and its processes with it."""
    has_dvc, imported, attendants = False, _Files(), set[int]()
    sources: list[Any] = [0, door]
    while 0 not in select.select(sources, [], [])[0]:
        line, _ = door.accept()
        try:
            line.settimeout(10.0)
            arguments, folder, environment, files = receive(line)
            line.settimeout(None)
        except (OSError, EOFError):
            line.close()
            continue
        if arguments[0] == DVC and not has_dvc:
            import_dvc()
            has_dvc = True
        if is_ours(arguments[-1]) and not imported:
            imported = import_for_commands()
        if threading.active_count() != 1:
            raise SystemExit("a thread is running: forking would not be safe")
        gc.freeze()  # the garbage collector writes into the objects that it looks at
        kill_orphans(attendants)
        if (pid := os.fork()) == 0:
            door.close()
            attend(line, arguments, folder, environment, files, imported)
        attendants.add(pid)
        for file in (line.detach(), *files):
            os.close(file)
    door.close()
    while kill_orphans(attendants):
        time.sleep(_LOOK_SECONDS)


def attend(
    line: socket.socket,
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    files: Sequence[int],
    imported: _Files,
) -> NoReturn:
    """Run a command and answer its exit status; it and all that it has started have ended then."""
    prctl(_ADOPT_ORPHANS, 1)
    pid = os.fork()
    if pid == 0:
        become(arguments, folder, environment, files, imported)
    for file in files:
        os.close(file)
    status = _status(pid, float("inf"), [line, 0])
    if status is None:
        # SIGINT lets DVC release its locks and a command remove its unfinished files.
        _signal_group(pid, signal.SIGINT)
        for _ in range(2):
            status = _status(pid, GRACE_SECONDS) if status is None else status
            kill_descendants(pid)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            status = _status(pid, float("inf"))
    kill_descendants(os.getpid())
    with contextlib.suppress(OSError):  # the asking side has gone
        line.sendall(NUMBER.pack(status))
    os._exit(0)


def _status(pid: int, seconds: float, lines: Sequence[Any] = ()) -> int | None:
    """The exit status of a child; ``None`` if it has not ended after these seconds, or if one of the lines ends."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if select.select(lines, [], [], _LOOK_SECONDS)[0] or time.monotonic() > deadline:
            return None


def become(
    arguments: list[str], folder: str, environment: dict[str, str], files: Sequence[int], imported: _Files
) -> NoReturn:
    """Set up the fork like a new process, and run the command; files after the standard ones stay open."""
    status = 70
    try:
        os.setsid()
        prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(len(files), os.sysconf("SC_OPEN_MAX"))
        # DVC's copies, also of private files, get the modes that the umask leaves.
        os.umask(0o077)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        if arguments[0] == DVC:
            # A stop ends the stage's command; DVC records finished work, or releases its locks, and ends on its own.
            signal.signal(signal.SIGINT, lambda *_: None)
            status = dvc(arguments)
        else:
            own = forkable(arguments, imported)
            signal.signal(signal.SIGINT, signal.default_int_handler if own else signal.SIG_DFL)
            if own is None:
                os.execvp(arguments[0], arguments)
            status = palimpsest(own)
    except BaseException as error:  # nothing may return into the server's loop
        os.write(2, f"ERROR: {type(error).__name__}{f': {error}' if isinstance(error, OSError) else ''}\n".encode())
    finally:
        os._exit(status)


def dvc(arguments: list[str]) -> int:
    """Run one DVC command in this process; return its exit status."""
    from dvc.cli import main

    from flows.stages.lock_entry import write_one_entry

    sys.argv = arguments
    if "--single-item" in arguments and not arguments[-1].endswith(".dvc"):
        write_one_entry(arguments[-1].rsplit(":", 1)[-1])
    try:
        return int(main(arguments[1:]) or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def palimpsest(arguments: list[str]) -> int:
    """Run one of our commands in this process; return its exit status, after its threads have ended."""
    sys.argv = [_PROGRAM, *arguments]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        status = importlib.import_module("tasks.cli").main(arguments)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    sys.stdout.flush()
    sys.stderr.flush()
    return int(status)


def is_ours(command: str, names: Sequence[str] = ("[a-z-]+",)) -> bool:
    """Whether a line for a shell is one of our commands, with no character that a shell changes.

    ``names``: patterns of the command's name; by default any name.
    """
    return re.fullmatch(rf"{_PROGRAM} +({'|'.join(names)})( +{_WORD}+)* *", command) is not None


def needs_pytorch(command: str) -> bool:
    """Whether a line for a shell is one of our commands that always import PyTorch."""
    return is_ours(command, HEAVY)


def forkable(arguments: Sequence[str], imported: _Files) -> list[str] | None:
    """The arguments of one of our commands, given to a shell; ``None`` if it is another one.

    ``None`` too if a file of ours differs from the one that was imported: a run uses the code that DVC has hashed.
    """
    is_stale = not imported or any(file_state(file) != state or not state[0] for file, state in imported.items())
    return arguments[-1].split()[1:] if is_ours(arguments[-1]) and not is_stale else None


def file_state(file: str) -> tuple[int, int, int]:
    """Change time (ns), size and inode of a file; zeros if it is gone."""
    try:
        found = os.stat(file)
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def import_dvc() -> None:
    """Import the modules of every DVC command."""
    from dvc.cli.parser import get_main_parser

    get_main_parser()
    for name in [*OF_DVC, "flows.stages.lock_entry"]:
        importlib.import_module(name)


def import_for_commands() -> _Files:
    """Import the modules of stages' commands; the state of each file of ours when it was imported."""
    began = time.time_ns()
    commands = importlib.import_module("tasks.cli").COMMANDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [*OF_COMMANDS, *(commands[name] for name in HEAVY)]:
            with contextlib.suppress(ImportError):  # the command that needs it reports it
                importlib.import_module(name)
    logging.root.handlers.clear()
    files = [m.__file__ for name, m in list(sys.modules.items()) if name.split(".")[0] == "tasks" and m.__file__]
    states = {file: file_state(file) for file in files}
    # A file that changes during its import may have changed before or after.
    return {file: state if state[0] < began else (0, 0, 0) for file, state in states.items()}


def kill_descendants(pid: int) -> None:
    """Kill the descendants of a process, not itself: a stage's command may ignore SIGINT."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def kill_orphans(attendants: set[int]) -> bool:
    """Kill what attendants that were killed have left; return whether any child is left."""
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            attendants.discard(pid)
    children = psutil.Process().children()
    for child in children:
        if child.pid not in attendants:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    return bool(children)


def _signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group of a leader; one that has not made its group yet gets it directly."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            send(pid, number)
            return


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    ctypes.CDLL(None).prctl(option, value)


def main(door: str) -> None:
    """Serve; afterwards remove the socket's folder."""
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    # Stages have private text in memory: a crash must not write it to the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prctl(_ADOPT_ORPHANS, 1)
    with socket.socket(fileno=int(door)) as listening:
        folder = os.path.dirname(listening.getsockname())
        serve(listening)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
