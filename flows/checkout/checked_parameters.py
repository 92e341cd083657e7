"""Whether ``params.yaml`` is known to be valid, so that a run with nothing to do need not read it through again.

To check it means to import the settings of every step, which takes longer than DVC takes to find that nothing is to
be done. A run that has checked it leaves a fingerprint of the file, of ``dvc.yaml`` (whose steps ``resources``
names) and of the code; while none of them changes, the answer cannot.
"""

import hashlib
import os
import sys
from pathlib import Path

import tasks
from flows.checkout.run_lock import STATE_FOLDER
from tasks.files.atomic_file import atomic_writer

FILE = Path(STATE_FOLDER) / "checked_parameters"


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
    parts += [hashlib.sha256((root / name).read_bytes()).hexdigest() for name in ("params.yaml", "dvc.yaml")]
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
