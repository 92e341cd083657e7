"""The recipe of docs/releases.md as printed, on the small experiment, up to a release that passes."""

import re
import shlex
from contextlib import chdir
from pathlib import Path
from textwrap import dedent

import forked_commands
import pytest
import yaml
from small_experiment import make_checkout, sentences, with_parameters

from tasks.cli import main
from tasks.corpora.words import word_spans
from tasks.parameters.parameter_file import read_parameters
from tasks.privacy.gate import release_outcome
from tasks.review.reading import Reading
from tasks.review.record import Mark

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)
NAMES = ("Elizabeth Warren", "James Wilson", "Maria Garcia", "Robert Brown")
MAIL = [f"{line[:-1]} and {NAMES[number % 4]}." for number, line in enumerate(sentences(300, ["us"], seed=3))]


def recipe() -> tuple[dict, list[str]]:
    """Settings and commands of the page's section, in their order."""
    page = (ROOT / "docs" / "releases.md").read_text(encoding="utf-8")
    section = page.split("## From your text to a release")[1].split("\n## ")[0]
    settings, *commands = (dedent(block) for block in re.findall(r"(?:^ {8}.+\n)+", section, re.MULTILINE))
    return yaml.safe_load(settings), [line for block in commands for line in block.splitlines()]


def set_up(folder: Path, settings: dict) -> None:
    """The experiment's settings with those of the recipe, and without what a release does not need."""
    (folder / "data/raw/mail.txt").write_text("".join(f"{line}\n" for line in MAIL), encoding="utf-8")
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    cleaning = parameters["corpora"]["mail"]["cleaning"]
    for name, section in settings.items():
        parameters[name] |= section
    unneeded = ("speech_datasets", "taggers", "detectors", "gold_sets")
    parameters["compare"] |= {name: [] for name in unneeded}
    parameters["corpora"]["mail"]["cleaning"] = cleaning
    # Counts instead of a Transformer: the model is no part of the release.
    parameters["language_model"] |= {"kind": "ngram", "ngram": {"order": 2, "generic_weight": None}}
    with_parameters(folder, parameters)


def review(folder: Path) -> None:
    """A person reads all lines on the page, and marks the names."""
    with chdir(folder):
        reading = Reading("mail", "every_tagger", "Ada", read_parameters().release.unmasked_direct)
        while (line := reading.next_line()) is not None:
            text = reading.lines[line]
            known = {word for name in NAMES for word in name.split()}
            marks = [Mark(*span, "PERSON", True) for span in word_spans(text) if text[slice(*span)] in known]
            reading.save(line, marks, 9.0)


def test_the_recipe_ends_in_a_release(tmp_path):
    folder = make_checkout(tmp_path / "an experiment")
    settings, commands = recipe()
    set_up(folder, settings)
    add, experiment, reviewed, release = commands
    assert (experiment, reviewed) == ("palimpsest run", "palimpsest review mail/every_tagger")
    cell = shlex.split(release)[2]
    # Of the run, the stages that a release needs.
    for done in (
        forked_commands.palimpsest(folder, *shlex.split(add)[1:]),
        forked_commands.repro(folder, f"audit_control@{cell.replace('/', '-')}"),
    ):
        assert done.returncode == 0, done.stdout + done.stderr
    with chdir(folder):
        (missing,) = release_outcome(cell, read_parameters()).missing
    assert re.search(rf"Review \d+ lines: {reviewed} \(some \d+ minutes\)\.$", missing)
    review(folder)
    with chdir(folder):
        assert main(shlex.split(release)[1:]) == 0
        outcome = release_outcome(cell, read_parameters())
    assert outcome.command == f"palimpsest release {cell} --name mail_1"
    dossier = (folder / "releases/mail_1/DOSSIER.md").read_text(encoding="utf-8")
    assert re.search(r"^\| (\d+) of \1 \| Ada \| .* \| \d+ \| one reviewer \|$", dossier, re.MULTILINE)
    assert not any(word in dossier for name in NAMES for word in name.split())
