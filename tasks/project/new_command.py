"""Make a folder with everything that an experiment needs, from the installed package: no clone is needed.

The folder is a git repository with the graph, params.yaml, the profiles and the recognisers that
ship. The files are added to git, and the commit is left to you. In a checkout, they are copied from
its top folder.

Stages depend on palimpsest.version, which names the installed code. After an upgrade of palimpsest,
--upgrade writes that file and dvc.yaml again. Then stages run again.

examples:
    palimpsest new mail && cd mail
    palimpsest new . --upgrade      in that folder, after an upgrade of palimpsest
"""

import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from tasks.errors import ParameterError
from tasks.options import Argument, Command, Options
from tasks.project.project_files import CODE_VERSION, COPY, copy_project_files

SUMMARY = "make a folder for an experiment from the installed package, without a clone"

_DEPENDENCIES = re.compile(r"\bdeps: \[([^]]*)\]")


class NewOptions(Options):
    """Options of the command: the folder."""

    folder: Annotated[str, Argument(positional=True)]
    """folder of the project, new or empty"""
    upgrade: bool = False
    """the folder is a project: write dvc.yaml and palimpsest.version again, for the installed code"""


def run(options: NewOptions) -> None:
    """Copy the files unless it is an upgrade, and make stages depend on the installed code."""
    from tasks.files.private_folders import close_private_folders
    from tasks.profiles.profile_command import refuse_lost_changes
    from tasks.surroundings import code_hash

    folder, source = Path(options.folder), COPY if COPY.is_dir() else Path(__file__).parents[2]
    if options.upgrade:
        if not (folder / CODE_VERSION).is_file():
            raise ParameterError(f"{str(folder)!r} has no {CODE_VERSION}; 'palimpsest new' makes a project")
        refuse_lost_changes(folder / "dvc.yaml", "commit them")
    else:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParameterError(f"{str(folder)!r} exists and is not empty; give the name of a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        copy_project_files(source, folder)
        close_private_folders(folder)
    graph = (source / "dvc.yaml").read_text(encoding="utf-8")
    (folder / "dvc.yaml").write_text(_DEPENDENCIES.sub(_on_installed_code, graph), encoding="utf-8")
    (folder / CODE_VERSION).write_text(f"palimpsest {version('palimpsest')}\n{code_hash()}\n", encoding="utf-8")
    if options.upgrade:
        print(f"dvc.yaml and {CODE_VERSION} in {str(folder)!r} are those of the installed palimpsest.")
    else:
        subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
        print(f"{str(folder)!r} is a project. In it: 'git commit -m start', 'palimpsest doctor', 'palimpsest run'.")
        print("For your own text: 'palimpsest init NAME FILE' before the run.")


def _on_installed_code(match: re.Match[str]) -> str:
    """Dependencies in ``dvc.yaml``, with one file in place of all paths of code."""
    paths = [path.strip() for path in match[1].split(",")]
    others = [path for path in paths if not path.startswith(("tasks", "flows", "dashboards"))]
    return f"deps: [{', '.join(others + [CODE_VERSION] * (len(others) < len(paths)))}]"


COMMAND = Command(NewOptions, run)
