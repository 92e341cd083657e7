"""``palimpsest init``: an experiment on somebody's own text from one command, planned as README says."""

import random
import re
import resource
import stat
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import yaml
from project_copy import copy_project
from scratch_project import CHECKOUT, Project

from tasks.cli import main
from tasks.corpora.sources.detection import texts_of
from tasks.corpora.sources.package_text import ChitchatCorpus
from tasks.files.private_folders import close_private_folders
from tasks.parameters.parameter_file import read_parameters
from tasks.review.reading import Reading

WORDS = (
    "we they the meeting report on Tuesday send pay call Ottilie Kowalczyk Rotterdam about invoice from later".split()
)
GERMAN = "wir haben gestern mit Frau Brandt in Leipzig über die Rechnung und den Vertrag gesprochen".split()


def sentences(count, words=WORDS, seed=1):
    """Made-up lines, all different."""
    chance = random.Random(seed)
    return [" ".join([*chance.choices(words, k=9), f"number {line}."]).capitalize() for line in range(count)]


def plain(folder: Path, count: int) -> Path:
    path = folder / "own text.txt"
    path.write_text("\n".join(sentences(count)) + "\n", encoding="utf-8")
    return path


def mail(folder: Path, count: int) -> Path:
    """A folder of messages, every third in German."""
    place = folder / "inbox"
    place.mkdir()
    for number in range(count):
        words = GERMAN if number % 3 == 0 else WORDS
        body = " ".join(sentences(4, words, seed=number))
        content = f"From: ada@example.org\nContent-Type: text/plain; charset=utf-8\n\n{body}\n\n> quoted\n"
        (place / f"{number}.eml").write_bytes(content.encode())
    return place


@pytest.fixture(scope="module")
def committed_clone(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of this project, with what is not committed yet, in one commit."""
    project = Project(tmp_path_factory.mktemp("clone") / "a clone")
    copy_project(project.folder)
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "state")
    return project


@pytest.fixture
def clone(committed_clone: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The copy as it was committed."""
    committed_clone.git("reset", "--quiet", "--hard")
    committed_clone.git("clean", "--quiet", "-ffdx")
    monkeypatch.chdir(committed_clone.folder)
    monkeypatch.setenv("PYTHONPATH", str(committed_clone.folder))
    return committed_clone.folder


@pytest.mark.parametrize(("count", "test", "trained"), [(300, 45, 225), (2100, 315, 1000)], ids=str)
def test_a_text_of_any_size_is_planned(clone, tmp_path, capsys, monkeypatch, count, test, trained):
    monkeypatch.setattr("flows.init_command._MOST_TRAINED", 1000)
    assert main(["init", "mail", str(plain(tmp_path, count))]) == 0
    said = capsys.readouterr().out
    assert f"mail: {count:,} different sentences" in said
    assert f"{trained:,} sentences to adapt on" in said
    assert f"{test:,} to measure with" in said
    assert ("so few sentences" in said) == (count < 2000)
    apply = "palimpsest apply CELL --input data/raw/mail.txt --output data/private/applied/mail\n"
    assert (f"a sample: 1,525 of {count:,} sentences" in said and apply in said) == (count > 2000)
    assert stat.S_IMODE((clone / "data" / "raw" / "mail.txt").stat().st_mode) == 0o600
    assert "push: false" in (clone / "data" / "raw" / "mail.txt.dvc").read_text()
    parameters = yaml.safe_load((clone / "params.yaml").read_text())
    assert parameters["corpora"]["mail"]["cleaning"].get("train_sentences") == (1000 if count > 2000 else None)
    assert "models/taggers" not in str(parameters["masking"]), "no tagger is trained here"
    assert main(["plan"]) == 0
    planned = capsys.readouterr().out
    assert "fill_control@mail-every_tagger-surrogate-1" in planned
    assert "unmasked@mail" in planned
    assert "chat" not in planned
    assert "speech" not in planned


def test_mail_in_two_languages_is_read_by_message_and_warned_of(clone, tmp_path, capsys):
    assert main(["init", "inbox", str(mail(tmp_path, 30))]) == 0
    said = capsys.readouterr().out
    assert "120 different sentences in 30 documents" in said
    assert "left out: 30 quoted" in said
    assert "% de" in said
    assert "The taggers are left out" in said
    parameters = yaml.safe_load((clone / "params.yaml").read_text())
    assert parameters["compare"]["techniques"] == ["allow_list", "vocabulary_threshold"]
    assert main(["plan"]) == 0
    assert "mask@reader-inbox-every_tagger" in capsys.readouterr().out


def test_records_are_read_by_their_fields_and_a_second_corpus_is_compared_in_its_place(clone, tmp_path, capsys):
    folder = tmp_path / "tickets"
    folder.mkdir()
    rows = [f"{number // 4};{line}" for number, line in enumerate(sentences(120))]
    (folder / "a.CSV").write_text("\n".join(["case;description", *rows]) + "\n")
    (folder / "scan.png").write_bytes(b"\x89PNG")
    command = ["init", "tickets", str(folder), "--text-field", "description", "--document-field", "case"]
    assert main(["init", "mail", str(plain(tmp_path, 60))]) == 0
    assert main(command) == 1
    assert "has changes that git has not got" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    said = capsys.readouterr().out
    assert "120 different sentences in 30 documents" in said
    assert "1 files are left out by the ending of their names: .png" in said
    parameters = yaml.safe_load((clone / "params.yaml").read_text())
    assert parameters["compare"]["datasets"] == ["tickets"]
    assert {"chat", "mail", "tickets"} == set(parameters["corpora"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mail", "One line.\n", "1 different sentences are too few"),
        ("mail", '{"subject": 1}\n', "none is called text, body"),
        ("ma il", "\n".join(sentences(40)), "letters, digits and underscores only"),
    ],
)
def test_what_cannot_be_compared_leaves_everything_as_it_was(clone, tmp_path, capsys, name, content, message):
    path = tmp_path / ("x.jsonl" if content.startswith("{") else "x.txt")
    path.write_text(content)
    assert main(["init", name, str(path)]) == 1
    assert message in capsys.readouterr().err
    assert Project(clone).git("status", "--porcelain") == ""


def readme_steps() -> list[str]:
    """The commands of README's three steps, as it prints them."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    text = text.split("## Your own text, in three commands")[1].split("\n\n", 2)[1]
    return [line.partition("#")[0].strip() for line in text.splitlines()]


def type_in(command: str, status: int = 0) -> str:
    """Run a printed command in the shell; its output."""
    whole = command.replace("palimpsest", f"{sys.executable} -m tasks.cli", 1)
    done = subprocess.run(whole, shell=True, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize(
    ("text", "minutes"), [(300, 24), (1300, 24), (20_000, 60), ("mail in two languages", 24)], ids=str
)
def test_the_steps_of_readme_and_the_command_that_they_print_end_in_a_release(clone, tmp_path, text, minutes):
    """Minutes of all cores together, in a clone with its environment. A reviewer reads all lines, and marks none."""
    close_private_folders(clone)
    if isinstance(text, int):
        chats = texts_of(ChitchatCorpus(kind="chitchat", source="constraints.txt").open())
        Path("mail.txt").write_text("\n".join(islice(filter(str.strip, chats), text)) + "\n", encoding="utf-8")
    else:
        mail(tmp_path, 150).rename("mail.txt")
    init, run, release = readme_steps()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    type_in(init)
    type_in(run)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if asked := re.search(r"palimpsest review (mail)/(\w+)", Path("results/verdict.txt").read_text(encoding="utf-8")):
        type_in(release, status=1)
        reading = Reading(*asked.groups(), "Ada", read_parameters().release.unmasked_direct)
        while (line := reading.next_line()) is not None:
            reading.save(line, [], 9.0)
    type_in(release)
    (printed,) = re.findall(
        r"^Can it be released now\? Yes: (palimpsest .+)$", type_in("palimpsest report"), re.MULTILINE
    )
    assert printed.endswith("--name mail-1")
    type_in(printed)
    assert Path("releases/mail-1/DOSSIER.md").is_file()
    assert 60 < seconds < 60 * minutes
