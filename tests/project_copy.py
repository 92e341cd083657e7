"""A copy of the project for tests and goldens: the files that git knows or would take, in a repository of its own."""

import shutil
import subprocess
from pathlib import Path

from tasks.project.project_files import shipped_lock

ROOT = Path(__file__).parents[1]


def copy_project(folder: Path, *without: str) -> None:
    """Copy the project to a folder, but for paths that begin with one of ``without``.

    What has run in this clone is left out: its releases, and its entries of ``dvc.lock``.

    The key of the clone is the same in each copy, and so are hashes in reports and the keys of runs.
    """
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("releases/", *without)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    if (folder / "dvc.lock").exists():
        (folder / "dvc.lock").write_text(shipped_lock(ROOT), encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    keys = folder / "data" / "private" / "keys"
    keys.mkdir(parents=True, mode=0o700)
    (keys / "clone_key").write_bytes(bytes(range(32)))
    (keys / "clone_key").chmod(0o600)
