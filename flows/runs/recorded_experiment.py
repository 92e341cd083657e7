"""A run with overrides as a DVC experiment: ``dvc exp show`` lists it, ``dvc exp apply NAME`` brings it back.

``dvc exp save`` would first commit every stage of the workspace to ``dvc.lock``, also those that a run of a part has
not brought up to date, and so record old outputs under new parameters. Here the commit has the workspace as it is:
tracked files and ``dvc.lock``, under the reference that DVC gives to experiments.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.graph.plan import Plan
from flows.stages.executor import Outcome, State
from tasks.errors import StageError

_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "palimpsest"), ("EMAIL", "palimpsest@localhost"))
}
"""For the commit where git knows no user."""


def check_recordable(folder: Path) -> None:
    """``StageError`` where an experiment could not be recorded: no git, no repository or no commit to start from."""
    if shutil.which("git") is None:
        raise StageError("--set records a DVC experiment, which needs git; install git, or edit params.yaml")
    if _git(folder, "rev-parse", "--verify", "--quiet", "HEAD", check=False) == "":
        raise StageError(
            "--set records a DVC experiment beside a git commit, and there is none yet; commit the project "
            "('git add -A && git commit'), or edit params.yaml"
        )


def record_experiment(folder: Path, overrides: Mapping[str, Any], outcomes: Mapping[str, Outcome], plan: Plan) -> str:
    """Commit the workspace as a DVC experiment on the present commit and return its name.

    Nothing of the workspace, the branch or git's index changes. The name comes from the content, so that recording the
    same state twice makes no second experiment. Untracked files stay out, but for ``dvc.lock``.
    """
    lost = (State.FAILED, State.SKIPPED)
    complete = all(name in outcomes and outcomes[name].state not in lost for name in plan.stages)
    baseline = _git(folder, "rev-parse", "HEAD")
    git_folder = Path(_git(folder, "rev-parse", "--absolute-git-dir"))
    with tempfile.TemporaryDirectory(prefix="palimpsest-experiment-") as temporary:
        index = Path(temporary) / "index"
        if (git_folder / "index").exists():
            shutil.copy(git_folder / "index", index)
        environment = {"GIT_INDEX_FILE": str(index)}
        _git(folder, "add", "--update", ":/", environment=environment)
        recorded = [name for name in ("params.yaml", "cells.yaml", "dvc.yaml", "dvc.lock") if (folder / name).exists()]
        _git(folder, "add", "--force", "--", *recorded, environment=environment)
        tree = _git(folder, "write-tree", environment=environment)
    # The same tree is the same experiment, complete or not: dvc.lock says what was done.
    name = f"run-{tree[:10]}"
    reference = f"refs/exps/{baseline[:2]}/{baseline[2:]}/{name}"
    settings = ", ".join(f"{key}={value!r}" for key, value in overrides.items())
    message = f"palimpsest run: {settings}" + ("" if complete else " (not every stage is done)")
    has_user = _git(folder, "config", "user.email", check=False) != ""
    environment = {} if has_user else _IDENTITY
    commit = _git(folder, "commit-tree", tree, "-p", baseline, "-m", message, environment=environment)
    _git(folder, "update-ref", reference, commit)
    return name


def _git(folder: Path, *arguments: str, check: bool = True, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0 and check:
        text = " ".join(done.stderr.split())
        raise StageError(f"git {arguments[0]} failed, so the experiment was not recorded: {text}")
    return done.stdout.strip() if done.returncode == 0 else ""
