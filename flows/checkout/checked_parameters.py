"""``params.yaml`` checked, and ``cells.yaml`` written as it asks, before the graph is read.

To check it means to import the settings of every step, which takes longer than DVC takes to find that nothing is to
be done. A run that has checked it leaves a fingerprint of both files, of ``dvc.yaml`` (whose steps ``resources``
names) and of the code; while none of them changes, the answer cannot, and a run with nothing to do need not ask again.
"""

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tasks
from flows.checkout.run_lock import STATE_FOLDER
from tasks.files.atomic_file import atomic_writer

if TYPE_CHECKING:
    from tasks.settings.resources import ResourceSettings

FILE = Path(STATE_FOLDER) / "checked_parameters"


def checked_resources(root: Path) -> "ResourceSettings":
    """The section ``resources``, after ``cells.yaml`` was brought to what ``params.yaml`` asks for.

    ``ParameterError`` where ``params.yaml`` has a mistake anywhere.
    """
    from tasks.parameters.cells_file import write_cells
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    parameters = read_parameters(root / DEFAULT_PATH)
    write_cells(parameters, root)
    return parameters.resources


def known_to_be_valid(root: Path) -> bool:
    """Whether a run has checked just these files with just this code."""
    try:
        return (root / FILE).read_text(encoding="ascii") == _fingerprint(root)
    except (OSError, ValueError):
        return False


def remember_as_valid(root: Path) -> None:
    """Note that the files have been checked."""
    with atomic_writer(root / FILE) as stream:
        stream.write(_fingerprint(root))


def _fingerprint(root: Path) -> str:
    parts = [sys.version, *map(str, _code())]
    parts += [
        hashlib.sha256((root / name).read_bytes()).hexdigest() for name in ("params.yaml", "cells.yaml", "dvc.yaml")
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _code() -> list[tuple[str, int, int]]:
    """Every source file of the steps, with its time and size."""
    found = []
    for folder, _, names in os.walk(str(Path(tasks.__file__).parent)):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                state = os.stat(path)
                found.append((path, state.st_mtime_ns, state.st_size))
    return sorted(found)
