"""Puts the files of a project into a wheel, for ``palimpsest new``. ``pyproject.toml`` says everything else."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from tasks.project.project_files import copy_project_files, project_files  # noqa: E402


class BuildWithProject(build_py):
    """The build of setuptools, and the files of a project in the package that copies them."""

    def run(self) -> None:
        """Build; an editable installation has the files in the checkout."""
        super().run()
        if not self.editable_mode:
            copy_project_files(ROOT, Path(self.build_lib, "tasks", "project", "files"))

    def get_source_files(self) -> list[str]:
        """The files of a source distribution."""
        return [*super().get_source_files(), *project_files(ROOT)]


setup(cmdclass={"build_py": BuildWithProject})
