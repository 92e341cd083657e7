"""What ran: the commit of the checkout, and its uncommitted changes, kept once for each state.

Changes are a patch of git's: of code, ``params.yaml`` and ``cells.yaml``, as they were when the stage started. They may
name private files, so the patch stays in the clone's private folder, mode 0600, and a report has its name alone: keyed
digits, of which nobody learns what changed. Files that git does not track are no part of it.
"""

import hmac
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from tasks.files.atomic_file import atomic_writer
from tasks.files.clone_key import clone_key, private_home

_DIFFERENCE = (
    *("diff", "HEAD", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"),
    # Whatever the user's own settings are, 'git apply' reads these. Stages write dvc.lock, and none reads it.
    *("--src-prefix=a/", "--dst-prefix=b/", "--", ":(top)", ":(top,exclude)dvc.lock"),
)


@cache
def code_state() -> dict[str, Any]:
    """``commit``, ``dirty`` (whether tracked files differ from it) and ``changes``, which names the patch that is kept.

    ``None`` each outside a git checkout; ``changes`` also where nothing differs.
    """
    commit, patch = _git("rev-parse", "HEAD"), _git(*_DIFFERENCE)
    return {
        "commit": None if commit is None else commit.decode().strip(),
        "dirty": None if patch is None else bool(patch),
        "changes": _keep(patch) if patch else None,
    }


def kept_changes(name: str) -> Path:
    """Where this clone keeps the patch of a state."""
    return private_home() / "lineage" / f"{name}.patch"


def _keep(patch: bytes) -> str:
    name = hmac.digest(clone_key("lineage"), patch, "sha256").hex()[:12]
    path = kept_changes(name)
    if not path.exists():
        with atomic_writer(path, private=True, binary=True) as stream:
            stream.write(patch)
    return name


def _git(*arguments: str) -> bytes | None:
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
