"""Puts the files of a project into a wheel, for ``palimpsest new``. ``pyproject.toml`` says everything else."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PROJECT = runpy.run_path(str(ROOT / "tasks" / "project" / "project_files.py"))


class BuildWithProject(build_py):
    """The build of setuptools, and the files of a project in the package that copies them."""

    def run(self) -> None:
        """Build; an editable installation has the files in the checkout."""
        super().run()
        if not self.editable_mode:
            PROJECT["copy_project_files"](ROOT, Path(self.build_lib, "tasks", "project", "files"))

    def get_source_files(self) -> list[str]:
        """The files of a source distribution."""
        return [*super().get_source_files(), *PROJECT["project_files"](ROOT)]


setup(cmdclass={"build_py": BuildWithProject})
