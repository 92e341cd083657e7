"""Make a folder with everything that an experiment needs, from the installed package: no clone is needed.

The folder is a git repository with the graph, params.yaml, the profiles and the recognisers that
ship. The files are added to git, and the commit is left to you. In a checkout, they are copied from
its top folder.

Stages depend on palimpsest.version, which names the installed code. After an upgrade of palimpsest,
--upgrade writes that file, dvc.yaml and constraints.txt again. So stages run again. All other files
stay.

examples:
    palimpsest new mail && cd mail
    palimpsest new . --upgrade      in that folder, after an upgrade of palimpsest
"""

import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from tasks.errors import ParameterError
from tasks.options import Argument, Command, Options
from tasks.project.project_files import COPY, copy_project_files

SUMMARY = "make a folder for an experiment from the installed package, without a clone"

_PACKAGES = Path(__file__).parents[2]
_UPGRADED = ("dvc.yaml", "constraints.txt")
_DEPENDENCIES = re.compile(r"\bdeps: \[([^]]*)\]")
_CODE = re.compile(r"(?:tasks|flows|dashboards)\b")


class NewOptions(Options):
    """Options of the command: the folder."""

    folder: Annotated[str, Argument(positional=True)]
    """folder of the project, new or empty"""
    upgrade: bool = False
    """the folder is a project: write the files that name the installed code again"""


def run(options: NewOptions) -> None:
    """Copy the files, or those that an upgrade changes, and write the version of the code."""
    from tasks.files.private_folders import close_private_folders
    from tasks.profiles.profile_command import refuse_lost_changes
    from tasks.records.stage_report import CODE_VERSION_FILE

    folder, source = Path(options.folder), COPY if COPY.is_dir() else _PACKAGES
    if options.upgrade:
        if not (folder / CODE_VERSION_FILE).is_file():
            raise ParameterError(f"{str(folder)!r} has no {CODE_VERSION_FILE}; 'palimpsest new' makes a project")
        for name in _UPGRADED:
            refuse_lost_changes(folder / name, "commit them")
            shutil.copyfile(source / name, folder / name)
    else:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParameterError(f"{str(folder)!r} exists and is not empty; give the name of a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        copy_project_files(source, folder)
        close_private_folders(folder)
    graph = (source / "dvc.yaml").read_text(encoding="utf-8")
    (folder / "dvc.yaml").write_text(on_installed_code(graph, CODE_VERSION_FILE), encoding="utf-8")
    (folder / CODE_VERSION_FILE).write_text(_code_version(), encoding="utf-8")
    if options.upgrade:
        print(f"{folder}: dvc.yaml, constraints.txt and {CODE_VERSION_FILE} are those of the installed palimpsest.")
    else:
        subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
        print(f"{folder} is a project. Next: 'cd {folder}', 'git commit -m start', 'palimpsest doctor'.")
        print("Your own text: 'palimpsest init NAME FILE'. Then 'palimpsest run'.")


def on_installed_code(graph: str, version_file: str) -> str:
    """The text of ``dvc.yaml`` with one file as dependency in place of the code."""

    def dependencies(match: re.Match[str]) -> str:
        paths = [path.strip() for path in match[1].split(",")]
        others = [path for path in paths if not _CODE.match(path)]
        return f"deps: [{', '.join(others + [version_file] * (len(others) < len(paths)))}]"

    return f"# {version_file} names the installed code.\n{_DEPENDENCIES.sub(dependencies, graph)}"


def _code_version() -> str:
    """The version of palimpsest, and a hash of the installed files."""
    from tasks.surroundings import hash_of_files

    files = [file for name in ("tasks", "dashboards") for file in (_PACKAGES / name).rglob("*.*")]
    code = [file for file in files if file.is_file() and file.suffix != ".pyc"]
    return f"palimpsest {version('palimpsest')}\n{hash_of_files(code, _PACKAGES)}\n"


COMMAND = Command(NewOptions, run)
