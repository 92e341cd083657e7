"""What a run has found valid is not read through again until a file or the code changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scratch_project import CHECKOUT, Project

import tasks
from flows.checkout.overrides import known_to_be_valid, remember_as_valid
from tasks.parameters import parameter_file


@pytest.fixture
def remembered(finished: Project) -> Project:
    assert not known_to_be_valid(finished.folder)
    (finished.folder / ".palimpsest").mkdir(exist_ok=True)
    remember_as_valid(finished.folder)
    assert known_to_be_valid(finished.folder)
    return finished


def test_a_changed_file_is_checked_again(remembered: Project) -> None:
    for name in ("params.yaml", "cells.yaml", "dvc.yaml"):
        before = remembered.read(name)
        remembered.write(name, before + "\n")
        assert not known_to_be_valid(remembered.folder)
        remembered.write(name, before)
        assert known_to_be_valid(remembered.folder)


def test_changed_code_checks_again(remembered: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "tasks"
    (copy / "masking").mkdir(parents=True)
    settings = copy / "masking" / "settings.py"
    settings.write_text("a = 1\n", encoding="utf-8")
    monkeypatch.setattr(tasks, "__file__", str(copy / "__init__.py"))
    remember_as_valid(remembered.folder)
    assert known_to_be_valid(remembered.folder)
    settings.write_text("a = 2\n", encoding="utf-8")
    os.utime(settings, ns=(1, 1))
    assert not known_to_be_valid(remembered.folder)


def test_a_mistake_is_told_by_plan_and_run_also_after_a_valid_run(finished: Project) -> None:
    assert finished.command("run").returncode == 0
    assert known_to_be_valid(finished.folder)
    finished.replace("params.yaml", "parallel_stages:", "parallel_stage:")
    for command in ("plan", "run"):
        done = finished.command(command)
        assert done.returncode == 1
        assert "parallel_stage" in done.stderr
    assert not known_to_be_valid(finished.folder)


def test_with_nothing_to_do_no_settings_are_imported(finished: Project) -> None:
    """They take longer to import than DVC takes to find that nothing is to be done."""
    assert finished.command("run").returncode == 0
    for command in ("plan", "run"):
        settings = parameter_file.__name__
        script = f"import sys; from tasks.cli import main; main([{command!r}]); print({settings!r} in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=finished.folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "False"
