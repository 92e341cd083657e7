"""README's steps for one's own text as printed, with default settings and real weights, up to a release."""

import re
import shlex
from contextlib import chdir
from pathlib import Path

import pytest
from test_two_drivers import copy_project, run, sentences

from tasks.corpora.words import word_spans
from tasks.files.private_folders import close_private_folders
from tasks.parameters.parameter_file import read_parameters
from tasks.review.reading import Reading
from tasks.review.record import Mark

ROOT = Path(__file__).parent.parent.parent
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
NAMES = ("Elizabeth Warren", "James Wilson", "Maria Garcia", "Robert Brown")


def steps() -> tuple[list[str], str]:
    """The three commands of README's section, and the review that it names."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    section = page.split("## Your own text, in three commands")[1].split("\n## ")[0]
    blocks = re.findall(r"(?:^ {4}palimpsest .+\n)+", section, re.MULTILINE)
    commands, review = ([line.partition("#")[0].strip() for line in block.splitlines()] for block in blocks[:2])
    return commands, review[0]


def read_all_lines(folder: Path, review: str) -> None:
    """A person reads the lines that are shown, and marks the names, until nothing is left to read."""
    dataset, technique = shlex.split(review)[-1].split("/")
    words = {word for name in NAMES for word in name.split()}
    with chdir(folder):
        reading = Reading(dataset, technique, "Ada", read_parameters().release.unmasked_direct)
        while (line := reading.next_line()) is not None:
            text = reading.lines[line]
            marks = [Mark(*span, "PERSON", True) for span in word_spans(text) if text[slice(*span)] in words]
            reading.save(line, marks, 9.0)


def test_three_commands_and_the_one_that_they_print_end_in_releases(tmp_path):
    folder = tmp_path / "a clone"
    copy_project(folder)
    close_private_folders(folder)  # as make install does
    lines = sentences(700, ["us"], seed=3)
    text = "".join(f"{line[:-1]} and {NAMES[number % 4]}.\n" for number, line in enumerate(lines))
    (folder / "mail.txt").write_text(text, encoding="utf-8")
    (init, whole, release), review = steps()
    run(folder, *shlex.split(init))
    run(folder, *shlex.split(whole))
    asked = run(folder, *shlex.split(release), expect=1).stderr
    assert review in asked
    read_all_lines(folder, review)
    run(folder, *shlex.split(release))
    assert (folder / "releases/mail-1/DOSSIER.md").is_file()
    (printed,) = re.findall(
        r"^Can it be released now\? Yes: (palimpsest .+)$", run(folder, "palimpsest", "advise").stdout, re.M
    )
    run(folder, *shlex.split(printed))
    assert (folder / "releases/mail_1/DOSSIER.md").is_file()
