"""A run with overrides as a DVC experiment: ``dvc exp show`` lists it, ``dvc exp apply NAME`` restores it."""

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.graph.graph import Graph, open_repository
from flows.stages.executor import UNDONE, Outcome
from tasks.errors import StageError


def check_recordable(folder: Path) -> None:
    """Raise ``StageError`` if no experiment can be recorded: without a commit to start from, or a user name."""
    # As DVC asks: by configuration or environment, without a guess from the machine's name.
    identity = ["-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"]
    for question, refusal in (
        (
            ["rev-parse", "--verify", "--quiet", "HEAD"],
            "on a git commit, and there is none yet; commit the project ('git add -A && git commit'), or edit "
            "params.yaml",
        ),
        (
            identity,
            "as a git commit, and git does not know your name; 'git config user.name NAME' and 'git config "
            "user.email ADDRESS' say it",
        ),
    ):
        if subprocess.run(["git", *question], cwd=folder, capture_output=True).returncode:
            raise StageError(f"--set records a DVC experiment {refusal}")


def record_experiment(
    folder: Path, overrides: Mapping[str, Any], outcomes: Mapping[str, Outcome], plan: Graph
) -> str | None:
    """Save the finished stages as ``dvc exp save`` does, and return the experiment's name; ``None`` if there are none.

    ``dvc.lock`` has each stage since it ended. DVC gets the name of one of them: without a name it would commit
    unfinished stages too, with old outputs under new parameters, and for each name it reads ``dvc.lock`` again.
    """
    done = [name for name in plan if name in outcomes and outcomes[name].state not in UNDONE]
    if not done:
        return None
    texts = [(folder / name).read_bytes() for name in ("params.yaml", "dvc.lock")]
    # The same parameters and outputs are the same experiment.
    name = f"run-{hashlib.sha256(b''.join(texts)).hexdigest()[:10]}"
    settings = ", ".join(f"{key}={value!r}" for key, value in overrides.items())
    unfinished = "" if len(done) == len(plan) else " (not every stage is done)"
    with open_repository(folder) as repository:
        repository.experiments.save(
            targets=done[:1], name=name, force=True, message=f"palimpsest run: {settings}{unfinished}"
        )
    return name
