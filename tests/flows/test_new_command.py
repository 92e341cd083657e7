"""``palimpsest new``: a project from an installed wheel, with no file of the checkout in reach."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import yaml
from project_copy import ROOT, copy_project

from tasks.cli import main
from tasks.project.project_files import shipped_lock

NO_PART = re.compile(
    r"(\.ci|\.github|benchmarks|dashboards|docs|flows|releases|tasks|tests)/|[A-Z]\w*(\.md|\.cff)?$|mkdocs\.yml$"
    r"|palimpsest\.py$|pyproject\.toml$|setup\.py$|\.pre-commit-config\.yaml$"
)
"""Files of the repository that a project does not need."""


def needed() -> set[str]:
    """All other files of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if not NO_PART.match(name)}


def code_of(project: Path) -> list[str]:
    """Dependencies of the graph that are in a checkout alone."""
    stages = yaml.safe_load((project / "dvc.yaml").read_text(encoding="utf-8"))["stages"].values()
    paths = [path for stage in stages for path in (stage.get("do") or stage)["deps"]]
    assert paths.count("palimpsest.version") > 20
    return [path for path in paths if path.startswith(("tasks", "flows", "dashboards"))]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Runs a program of an environment in which palimpsest is installed from a wheel of this checkout."""
    place = tmp_path_factory.mktemp("installed")
    copy_project(place / "source", "tests", "docs")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", "wheels", "./source"]
    subprocess.run([*pip, *build], cwd=place, check=True)
    venv.create(place / "environment", symlinks=True)
    python = place / "environment" / "bin" / "python"
    (wheel,) = (place / "wheels").iterdir()
    install = ["--python", str(python), "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([*pip, *install], check=True)
    paths = sysconfig.get_paths(vars={"base": str(place / "environment")})
    # Its .pth files are not read from there, so the editable installation is out of reach.
    (Path(paths["purelib"]) / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    settings = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(place), "PYTHONPATH": ""}

    def run(folder, *command):
        environment = {**os.environ, **settings, "GIT_CONFIG_GLOBAL": "/dev/null"}
        words = [python.parent / command[0], *command[1:]]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.packages = Path(paths["purelib"])
    return run


def test_a_wheel_makes_a_project_whose_stages_run(installed, tmp_path):
    said = installed(tmp_path, "palimpsest", "new", "mail")
    project = tmp_path / "mail"
    assert "palimpsest doctor" in said
    listed = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, text=True, check=True)
    assert set(listed.stdout.splitlines()) == needed() | {"palimpsest.version"}
    assert "everything is there" in installed(project, "palimpsest", "doctor")
    (tmp_path / "mail.txt").write_text("".join(f"We met {n} people in Boston, said Anna.\n" for n in range(99)))
    installed(project, "palimpsest", "init", "mail", "../mail.txt")
    installed(project, "python", "-m", "dvc", "repro", "--quiet", "corpus@mail")
    assert (project / "data/private/corpora/mail/train.txt").read_text().count("Boston") > 40
    with open(installed.packages / "tasks" / "errors.py", "a") as stream:
        stream.write("# a new version\n")
    installed(project, "palimpsest", "new", ".", "--upgrade")
    assert "input palimpsest.version changed" in installed(project, "palimpsest", "plan", "corpus@mail")


def test_a_checkout_makes_a_project_too(tmp_path, capsys):
    project = tmp_path / "a" / "b"
    assert main(["new", str(project)]) == 0
    assert code_of(project) == []
    assert (project / "dvc.lock").read_text() == shipped_lock(ROOT)
    assert {(project / name).stat().st_mode & 0o777 for name in ("data", "results", ".dvc/cache")} == {0o700}
    capsys.readouterr()
    assert main(["new", str(project)]) == 1
    assert "exists and is not empty; give the name of a new folder" in capsys.readouterr().err
    (project / "dvc.yaml").write_text("stages: {}\n")
    assert main(["new", str(project), "--upgrade"]) == 1
    assert "'dvc.yaml' has changes that git has not got" in capsys.readouterr().err
    subprocess.run(["git", "checkout", "--quiet", "dvc.yaml"], cwd=project, check=True)
    (project / "palimpsest.version").write_text("palimpsest 0.0.1\n")
    assert main(["new", str(project), "--upgrade"]) == 0
    assert code_of(project) == []
    assert "0.0.1" not in (project / "palimpsest.version").read_text()
