"""Commands of stages, started in a fork with their modules already imported, instead of in a new interpreter.

Importing PyTorch and similar libraries takes two to six seconds of processor time, for many stages as long as their
work. Our own modules, whose settings are classes with checks, take a second more. The supervisor imports both once,
before the first stage, and its forks have them. If a file of ours has changed since, commands start in new interpreters
again: a run uses the code that DVC has hashed for this stage.

Imports nothing of this project: the supervisor loads it by its path.
"""

import contextlib
import gc
import importlib
import os
import shlex
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

LIBRARIES = (
    "torch lightning.pytorch safetensors.torch transformers transformers.models.bert.modeling_bert spacy tqdm mlflow "
    "mlflow.store.tracking.sqlalchemy_store"
).split()
"""Libraries that the commands below import in most experiments."""
COMMANDS = frozenset(
    (
        "adapt audit compare-unlearning encode-speech examples fill fluency fuse perplexity pretrain rescore "
        "train-filler tune-filler tune-fusion"
    ).split()
)
"""Commands that always import PyTorch. For others, the imports would count as their memory."""
OURS = (
    "tasks.audit.text_attacks",
    "tasks.audit.twin",
    "tasks.filling.filled_corpus",
    "tasks.filling.masked_lm.weighing",
    "tasks.language_model.divided_model",
    "tasks.language_model.evaluation.perplexity",
    "tasks.language_model.training",
    "tasks.language_model.transformer.scoring",
    "tasks.parameters.parameter_file",
    "tasks.speech.fusion.fuse_stage",
)
"""Our modules that these commands import only when they run, with their own imports."""
_SHELL_CHARACTERS = frozenset("|&;<>()$`\\\"'*?[]#~%!{}\n")
_PROGRAM = "palimpsest"


ENOUGH = 8
"""Number of such commands from which on a run saves more than the imports cost."""


imported: dict[str, tuple[int, int, int]] = {}
"""Files of our own modules that forks have, with their state at import."""


def import_libraries() -> None:
    """Import the modules for forks. The command that needs a missing or broken one reports it."""
    for name in LIBRARIES:
        _import(name)
    began = time.time_ns()
    _import("tasks.cli")
    if "tasks.cli" in sys.modules:
        for name in sorted({*map(sys.modules["tasks.cli"].COMMANDS.get, COMMANDS), *OURS}):
            _import(name)
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "tasks" and module.__file__:
            state = file_state(module.__file__)
            # A file that changes during its import may have changed before or after.
            imported[module.__file__] = state if state[0] < began else (0, 0, 0)
    gc.freeze()


def _import(name: str) -> None:
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        importlib.import_module(name)


def file_state(file: str) -> tuple[int, int, int]:
    """Change time (ns), size and inode of a file; zeros if it is gone."""
    try:
        found = os.stat(file)
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def forkable(command: str) -> list[str] | None:
    """``arguments_of`` a command; ``None`` too if a fork's code differs from the files."""
    arguments = arguments_of(command)
    if arguments is None or any(file_state(file) != state or not state[0] for file, state in imported.items()):
        return None
    return arguments


def start_commands_in_forks() -> None:
    """Make DVC in this process start our own commands in a fork, and all others as before."""
    from dvc.stage import run
    from dvc.stage.exceptions import StageCmdFailedError
    from tqdm import tqdm

    start_process = run._run
    # Its thread, which watches over progress bars, would make a fork unsafe.
    tqdm.monitor_interval = 0

    def start(executable: str | None, cmd: str, **options: Any) -> None:  # noqa: ANN401 - what DVC gives Popen
        arguments = forkable(cmd)
        alone = threading.active_count() == 1
        if arguments is None or not alone or not _is_ours(options["env"]):
            start_process(executable, cmd, **options)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            become(arguments, options["cwd"], options["env"])
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            _, status = os.waitpid(pid, 0)
        finally:
            signal.signal(signal.SIGINT, before)
        if status:
            raise StageCmdFailedError(cmd, os.waitstatus_to_exitcode(status))

    run._run = start


def arguments_of(command: str) -> list[str] | None:
    """The arguments of one of our commands, or ``None`` if it is another one or needs a shell."""
    if _SHELL_CHARACTERS & set(command):
        return None
    words = shlex.split(command)
    if len(words) < 2 or words[0] != _PROGRAM or words[1] not in COMMANDS:
        return None
    return words[1:]


def _is_ours(environment: dict[str, str]) -> bool:
    """Whether a shell would find the command of this interpreter's environment."""
    from shutil import which

    found = which(_PROGRAM, path=environment.get("PATH"))
    return found is not None and os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable)


def become(arguments: Sequence[str], folder: str, environment: dict[str, str], keep: int | None = None) -> NoReturn:
    """Set up the fork like a new process, and run the command; ``keep`` is a file that stays open."""
    status = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Locks of the run and of DVC are not the command's. The objects of these files must never be collected, since
        # that would close the command's files, which get the same numbers.
        gc.freeze()
        os.closerange(3, keep or 3)
        os.closerange((keep or 2) + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = [_PROGRAM, *arguments]
        sys.modules["__main__"] = types.ModuleType("__main__")
        sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        _forget_what_dvc_set()
        status = _run(list(arguments))
    except BaseException as error:  # nothing may return into DVC
        os.write(2, f"ERROR: {type(error).__name__}\n".encode())
    finally:
        os._exit(status)


def _run(arguments: list[str]) -> int:
    """The command's exit status, after its threads have ended and its output is written."""
    try:
        status = importlib.import_module("tasks.cli").main(arguments)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return int(status)


def _forget_what_dvc_set() -> None:
    """Remove DVC's handlers, which would show the command's own records in DVC's format."""
    import logging

    from tqdm import tqdm

    tqdm.monitor_interval = 10
    for name in [None, *logging.root.manager.loggerDict]:
        logger = logging.getLogger(name)
        if name is None or name.split(".")[0] in ("dvc", "dvc_data", "dvc_objects", "dvc_render", "dvc_task"):
            logger.handlers.clear()
