"""Commands in a fork of the test's process: apart from it as in a process of their own, but with Python, DVC and our
modules there already, which take ten times as long to start as most commands take.
"""

import importlib
import logging
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

import pytest

from flows.stages.warm_server import OF_DVC
from tasks.cli import load_command, main

FORKS = Lock()
"""filelock refuses to fork while another thread does."""


def palimpsest(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """One of our commands in a folder. Not for those that ask a Prefect server: Prefect reads its settings once."""
    load_command(arguments[0])
    import_dvc()
    importlib.import_module("tasks.parameters.parameter_file")
    return forked(lambda: main(list(arguments)), folder, {})


def dvc(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> CompletedProcess[str]:
    """One DVC command in a folder, with additions to its environment."""
    import_dvc()
    return forked(lambda: run_dvc(arguments), folder, environment or {})


def repro(folder: Path, *stages: str) -> CompletedProcess[str]:
    """``dvc repro`` of stages of our commands, which DVC starts without a shell, in one fork."""
    import_dvc()
    from dvc.stage import run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "cmd_run", run_stage)
        return forked(lambda: run_dvc(("repro", *stages)), folder, {})


def run_stage(stage: Any, dry: bool = False, run_env: Mapping[str, str] | None = None) -> None:
    """What DVC's ``cmd_run`` does, in this process."""
    from dvc.stage.exceptions import StageCmdFailedError
    from dvc.stage.run import display_command

    print(f"Running stage {stage.addressing!r}:")
    display_command(stage.cmd)
    os.environ |= {"DVC_ROOT": stage.repo.root_dir, "DVC_STAGE": stage.addressing}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", shlex.split(stage.cmd))
        status = main(sys.argv[1:])
    if status:
        raise StageCmdFailedError(stage.cmd, status)


def import_dvc() -> None:
    from dvc.cli.parser import get_main_parser

    get_main_parser()
    for name in OF_DVC:
        importlib.import_module(name)


def run_dvc(arguments: tuple[str, ...]) -> int:
    from dvc.cli import main
    from dvc.logger import setup

    for name in ("dvc", "dvc_data", "dvc_objects"):
        logging.getLogger(name).handlers.clear()
    setup()  # its messages go to the streams of now
    sys.argv = ["dvc", *arguments]
    return int(main(list(arguments)) or 0)


def forked(command: Callable[[], int], folder: Path, environment: Mapping[str, str]) -> CompletedProcess[str]:
    """The exit status and what was written to both streams."""
    with TemporaryFile() as output, TemporaryFile() as errors:
        with FORKS:
            child = os.fork()
        if child == 0:
            status = 70
            try:
                os.chdir(folder)
                os.environ.update(environment)
                for handle, file in ((1, output), (2, errors)):
                    os.dup2(file.fileno(), handle)
                sys.stdout, sys.stderr = (os.fdopen(handle, "w", encoding="utf-8") for handle in (1, 2))
                status = command()
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else 1
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        for file in (output, errors):
            file.seek(0)
        return CompletedProcess(
            [], os.waitstatus_to_exitcode(ended), output.read().decode("utf-8"), errors.read().decode("utf-8")
        )
