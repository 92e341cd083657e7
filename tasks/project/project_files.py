"""Files of a project other than code. ``setup.py`` copies them into a wheel, so this module needs no other package."""

import re
import shutil
from pathlib import Path

CODE_VERSION = "palimpsest.version"
"""A dependency of the stages of a project that 'palimpsest new' made: it names the installed code."""
COPY = Path(__file__).parent / "files"
"""Their copy in an installed package; a checkout has them in its top folder."""
_NAMES = (
    *(".dvc/.gitignore", ".dvc/config", ".dvcignore", ".gitignore", "cells.yaml", "compose.yaml", "constraints.txt"),
    *("data/README.md", "dvc.lock", "dvc.yaml", "models/english_spanish", "models/english_spanish_report.json"),
    *("models/recogniser", "models/recogniser_report.json", "models/taggers/README.md", "params.yaml", "prefect.yaml"),
    *("profiles", "requirements-models.txt", "results/.gitignore"),
)
_SHIPPED = re.compile(r"^  train_recogniser@.*\n(?:    .*\n)+", re.MULTILINE)


def project_files(root: Path) -> list[str]:
    """The paths of all files, relative to ``root``: the top folder of a checkout, or ``COPY``."""
    found = [file for name in _NAMES for file in (root / name, *sorted((root / name).rglob("*"))) if not file.is_dir()]
    return [file.relative_to(root).as_posix() for file in found]


def copy_project_files(root: Path, target: Path) -> None:
    """Copy all files; of ``dvc.lock`` only the entries of the recognisers, since others have hashes of private text."""
    for name in project_files(root):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target / name)
    (target / "dvc.lock").write_text(shipped_lock(root), encoding="utf-8")


def shipped_lock(root: Path) -> str:
    """The entries of the recognisers in ``dvc.lock`` of that folder, without those of stages that have run there."""
    lock = (root / "dvc.lock").read_text(encoding="utf-8")
    return "schema: '2.0'\nstages:\n" + "".join(_SHIPPED.findall(lock))
