"""Commands that the pages print: the real parser parses each, and those of many pages run as printed."""

import gzip
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import chdir, closing
from functools import cache
from mailbox import mbox
from pathlib import Path

import pytest
import small_experiment as tiny
import yaml
from openpyxl import Workbook
from reviewed_corpus import make_corpus
from tiny_language_models import save_transformer

from tasks import cli
from tasks.corpora.words import word_spans
from tasks.parameters.parameter_file import read_parameters
from tasks.review.reading import Reading
from tasks.review.record import Mark

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "data/README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += [path for folder in ("how-to", "tutorials") for path in sorted((ROOT / "docs" / folder).glob("*.md"))]
NAMES = {page.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md"): page for page in PAGES}
PROGRAMS = "palimpsest|make|dvc|git|python|pip|hf|ray|srun|kubectl|prefect|mlflow|export|source|set|mkdir"
COMMAND = re.compile(rf"^ {{4,}}((?:\w+=\S+ )*(?:{PROGRAMS}) .*)$", re.MULTILINE)
INLINE = re.compile(r"`(palimpsest [^`\n]+)`")

IN_A_FOLDER = ("masking", "detectors", "how-to/own-list", "how-to/own-detector", "how-to/add-technique", "how-to/nbest")
"""Pages whose commands run in a folder with the files that the page names."""
IN_A_FOLDER_SLOW = ("audit", "corpora", "filling", "languages", "word_error_rate")
"""They load several models, or score many candidates."""
IN_A_CHECKOUT = ("flows", "how-to/gpu", "how-to/hub-models", "how-to/install", "how-to/own-text")
"""Pages whose commands run in a checkout with the default parameters, where nothing has run."""
IN_AN_EXPERIMENT = ("how-to/failed-stage", "how-to/upgrade", "how-to/delete")
"""Pages whose commands run in a finished experiment on a mailbox: that of the tutorial."""

SKIPPED = re.compile(
    "|".join(
        (
            r"INDEX|TEXT|NAME|FOLDER|exp apply",  # a placeholder
            r"pip (install|wheel)|git (clone|pull)|make install|: (source|export|set -a)|docker",  # network, shell
            r"palimpsest (up|serve)|make down|^flows: (prefect|PALIMPSEST)",  # a server
            r"review [\w/]+( --reviewer \w+)?( --second)?$|--import",  # a person's answers
            r"palimpsest (new|profile)|commit -m start|PALIMPSEST_DEBUG|^audit: palimpsest report",  # tested elsewhere
            r"^flows: palimpsest run|--set '?audit|^how-to/(nbest|own-text): palimpsest (add|run)",  # long
            # Models, or text of two languages.
            r"audit-tagger|--labels|-mixed|pretrain|data/raw/talk|^languages: .* perplexity|^corpora: palimpsest fill",
        )
    )
)
"""Commands of these pages that do not run here, as ``PAGE: COMMAND``."""


def commands(page: str) -> list[str]:
    """The lines of a page's code blocks that a shell would run, without their comments."""
    text = NAMES[page].read_text(encoding="utf-8").replace("\\\n", " ")
    found = (re.split(r"\s+# |\s{3,}(?=[a-z])", line)[0].strip() for line in COMMAND.findall(text))
    return [re.sub(" {2,}", " ", one) for one in found]


def run_commands(page: str) -> list[str]:
    """Commands of a page that its test runs."""
    found = [command for command in commands(page) if not SKIPPED.search(f"{page}: {command}")]
    assert found, page
    return found


@cache
def parser_of(name: str):
    """The parser of a command, or None where there is none of that name."""
    module = cli.load_command(name)
    return cli.command_parser(name, module) if module else None


def wrong(command: str) -> str | None:
    """The word of a command that does not exist. A command inside a sentence may lack what is required."""
    _, name, *words = shlex.split(command)
    if name.startswith("-") or name.isupper():  # an option of the program, or a word for any command
        return None
    if parser_of(name) is None:
        return name
    known = re.findall(r"--[\w-]+", parser_of(name).format_help())
    return next((one for word in words if word.startswith("--") and (one := word.split("=")[0]) not in known), None)


@pytest.mark.parametrize("page", NAMES)
def test_printed_commands_parse(page):
    printed = commands(page)
    for whole in printed:
        for command in re.split(r" && ", whole):
            words = shlex.split(re.sub(r"^(\w+=\S+ )+", "", command))
            if words[0] == "palimpsest" and "$" not in command:
                assert parser_of(words[1]), command
                parser_of(words[1]).parse_args(words[2:])
            elif words[0] == "make":
                targets = [word for word in words[1:] if "=" not in word]
                known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
                assert set(targets) <= set(known), command
    assert not [one for one in INLINE.findall(NAMES[page].read_text(encoding="utf-8")) if wrong(one)]
    if page == "README":
        assert len(printed) > 4


def blocks(page: str, language: str = "") -> list[str]:
    """Code blocks of a page: indented ones, or fenced ones of a language."""
    text = NAMES[page].read_text(encoding="utf-8")
    if language:
        return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return ["\n".join(line[4:] for line in one.splitlines()) for one in re.findall(r"(?:^    .*\n|^\n)+", text, re.M)]


@pytest.mark.parametrize("page", ["how-to/nbest", "how-to/own-list", "how-to/own-detector", "how-to/hub-models"])
def test_the_settings_of_a_page_are_valid(page, tmp_path):
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    found = [yaml.safe_load(one) for one in blocks(page) if re.match(r"\s*\w+:\n", one)]
    assert found
    for name, section in (pair for one in found for pair in one.items()):
        parameters[name] = parameters.get(name, {}) | section
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    assert read_parameters(tmp_path / "params.yaml")


def make_folder(folder: Path) -> None:
    """The files that pages name: text, labels, lists, a small language model and a tagger with random weights."""
    lines = tiny.sentences(40, ["Elizabeth Warren", "James Wilson"], seed=1)
    write = {"mail.txt": lines, "other_mail.txt": tiny.sentences(40, ["Maria Garcia"], seed=2), "talk.txt": lines}
    write["our_words.txt"] = sorted(
        {word for line in lines for word in line.lower().strip(".").split()} - {"elizabeth"}
    )
    write["left_out.txt"] = tiny.sentences(40, ["Robert Miller"], seed=3)
    write["released.txt"] = [line.replace("Elizabeth", "Mary") for line in lines]
    labels = [{"text": line, "spans": []} for line in lines]
    for record in labels:
        start = record["text"].index("with ") + 5
        record["spans"] = [{"start": start, "end": len(record["text"]) - 1, "label": "PERSON"}]
    write["labelled.jsonl"] = write["mail.jsonl"] = list(map(json.dumps, labels))
    about = [{"tag": "NAME", "keyword": "James Wilson", "hardness": 1}]
    subjects = [{"description": "James Wilson", "PIIs": about}]
    write["facts.jsonl"] = [json.dumps({"text": line, "subjects": subjects}) for line in lines[:4]]
    write["released.jsonl"] = [json.dumps({"text": "We met [PERSON]."})] * 4
    spoken = [{"utterance_id": f"u{number}", "text": line} for number, line in enumerate(lines)]
    write["test/manifest.jsonl"] = [json.dumps({**one, "audio": "a.wav", "seconds": 1.0}) for one in spoken]
    write["found.jsonl"] = list(map(json.dumps, spoken))
    hypotheses = [{"text": "turn left hear", "score": -4.1}, {"text": "turn left here", "score": -4.2}]
    lists = json.dumps({"utterance_id": "u1", "reference": "turn left here", "hypotheses": hypotheses})
    for name, text in write.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    (folder / "data/raw").mkdir(parents=True)
    (folder / "data/raw/calls_test.jsonl.gz").write_bytes(gzip.compress(lists.encode()))
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"text": lines}), folder / "mail.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"text": lines}), folder / "filled.parquet")
    save_transformer(folder / "models/adapted", positions=64)
    make_tagger(folder / "models/our_bert")
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    own = [yaml.safe_load(one) for one in blocks("how-to/own-detector") if "models/our_bert" in one]
    parameters["masking"] |= own[0]["masking"]
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")


def make_tagger(folder: Path) -> None:
    """A BERT with random weights and the labels of ``how-to/own-detector``."""
    tiny.make_tiny_filler(folder)
    from transformers import BertConfig, BertForTokenClassification

    configuration = BertConfig.from_pretrained(folder)
    configuration.num_labels = 4
    configuration.id2label = dict(enumerate(["O", "B-PATIENT", "B-WARD", "B-DRUG"]))
    configuration.label2id = {label: number for number, label in configuration.id2label.items()}
    BertForTokenClassification(configuration).save_pretrained(folder)


def outside_package(folder: Path) -> None:
    """The module of ``how-to/add-technique`` with its entry point, as if installed."""
    (folder / "capitals.py").write_text(blocks("how-to/add-technique", "python")[0], encoding="utf-8")
    information = folder / "capitals-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: capitals\nVersion: 1\n", encoding="utf-8")
    page = NAMES["how-to/add-technique"].read_text(encoding="utf-8")
    group, point = re.search(r'\[project\.entry-points\."(.+)"\]\n +(.+)', page).groups()
    point = point.replace('"', "")
    (information / "entry_points.txt").write_text(f"[{group}]\n{point}\n", encoding="utf-8")


@pytest.fixture(scope="module")
def made_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named by pages")
    make_folder(folder)
    return folder


@pytest.fixture
def folder(made_folder, tmp_path, monkeypatch):
    """The current folder, with the files that pages name."""
    shutil.copytree(made_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_page(page: str) -> None:
    """Run the commands of a page, in this process."""
    for command in run_commands(page):
        assert cli.main(shlex.split(command)[1:]) == 0, command


@pytest.mark.parametrize("page", [page for page in IN_A_FOLDER if page != "how-to/add-technique"])
def test_commands_run_in_a_folder(page, folder):
    run_page(page)


def test_commands_run_on_a_review(tmp_path, monkeypatch):
    """Four of six lines have been read, in a corpus of the name that the page has."""
    monkeypatch.chdir(make_corpus(tmp_path))
    for kind in ("corpora", "masked"):
        Path("data/private", kind, "mail").rename(Path("data/private", kind, "chat"))
    reading = Reading("chat", "every_tagger", "Ada", 20.0)
    for _ in range(4):
        reading.save(reading.next_line(), [], 9.0)
    run_page("review")


@pytest.mark.slow
@pytest.mark.parametrize("page", IN_A_FOLDER_SLOW)
def test_commands_run_in_a_folder_slowly(page, folder):
    (folder / "masked.txt").write_text("We met [PERSON] in [LOCATION] yesterday.\n", encoding="utf-8")
    run_page(page)


def test_an_added_technique_runs(folder):
    outside_package(folder)
    (command,) = run_commands("how-to/add-technique")
    shell(command, folder, PYTHONPATH=str(folder))
    assert (folder / "masked.txt").is_file()


def shell(command: str, folder: Path, expect: int = 0, **variables: str) -> str:
    """Run a printed line in a shell; its output."""
    known = {**tiny.environment(), "PALIMPSEST_PREFECT_PORT": "0", **variables}
    done = subprocess.run(command, shell=True, cwd=folder, env=known, capture_output=True, text=True)
    assert done.returncode == expect, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


PEOPLE = ("Elizabeth Warren", "James Wilson", "Maria Garcia", "Robert Brown")


def make_mailbox(path: Path) -> None:
    """Three hundred made-up sentences in sixty messages."""
    lines = [f"{one[:-1]} and {PEOPLE[number % 4]}." for number, one in enumerate(tiny.sentences(300, ["us"], seed=3))]
    box = mbox(path)
    for start in range(0, 300, 5):
        body = "\n".join(lines[start : start + 5])
        box.add(f"From: a@example.org\nContent-Type: text/plain; charset=utf-8\n\n{body}\n".encode())
    box.close()


def shrink(folder: Path) -> None:
    """Sizes of a tiny experiment, below the corpus that ``init`` named: one filled cell, attacked."""
    own = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters = tiny.PARAMETERS | {"corpora": {"mail": own["corpora"]["mail"]}, "release": own["release"]}
    cleaning = {"minimum_words": 3, "valid_sentences": 20, "test_sentences": 30}
    parameters["corpora"]["mail"]["cleaning"] = cleaning
    # Surrogates of so small a corpus repeat, so a guess is often right.
    parameters["release"]["at_most"]["reidentified"] = 0.5
    parameters["masking"] = tiny.PARAMETERS["masking"] | {"every_tagger": {"kind": "every_tagger"}}
    parameters["filling"] = tiny.PARAMETERS["filling"] | {"surrogate": {"kind": "surrogate"}}
    less = {key: [] for key in ("speech_datasets", "recognisers", "taggers", "detectors", "gold_sets")}
    more = {"techniques": ["allow_list", "every_tagger"], "baselines": ["baseline1"]}
    fills = [{"methods": ["surrogate"], "audited": ["surrogate"]}]
    parameters["compare"] = tiny.PARAMETERS["compare"] | less | more | {"fills": fills}
    tiny.with_parameters(folder, parameters)


def commit(folder: Path) -> None:
    git = "git -c user.name=x -c user.email=x@example.org"
    shell(f"git add --all && {git} commit --quiet --allow-empty --message state", folder)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout of what is here, with a mailbox, committed."""
    folder = tiny.make_checkout(tmp_path_factory.mktemp("printed") / "a checkout")
    make_mailbox(folder / "mail.mbox")
    (folder / "data/raw/mail.txt").unlink()
    for name in ("params.yaml", "cells.yaml"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    shell("python -m tasks.files.private_folders", folder)  # as 'make install' does
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def experiment(checkout, tmp_path_factory):
    """A checkout where the steps 2 to 4 of the tutorial ran, as printed; ``init`` is followed by smaller sizes."""
    folder = copied(checkout, tmp_path_factory.mktemp("run"))
    looked, begun, run = commands("tutorials/mail")[:3]
    assert "300 sentences" in shell(looked, folder)
    assert "mail: " in shell(begun, folder)
    shrink(folder)
    assert "Can it be released now?" in shell(run, folder)
    return folder


def copied(folder: Path, place: Path) -> Path:
    """A copy for one test, at the same depth."""
    subprocess.run(["cp", "-a", str(folder), str(place / "copy")], check=True)
    return place / "copy"


def read_all_lines(folder: Path) -> None:
    """A person reads each line on the page, and marks the names."""
    known = {word for name in PEOPLE for word in name.split()}
    with chdir(folder):
        reading = Reading("mail", "every_tagger", "Ada", read_parameters().release.unmasked_direct)
        while (line := reading.next_line()) is not None:
            text = reading.lines[line]
            marks = [Mark(*span, "PERSON", True) for span in word_spans(text) if text[slice(*span)] in known]
            reading.save(line, marks, 9.0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", IN_A_CHECKOUT)
def test_commands_run_in_a_checkout(page, checkout, tmp_path):
    folder = copied(checkout, tmp_path)
    if page == "how-to/own-text":
        lines = tiny.sentences(60, ["us"], seed=5)
        (folder / "mail.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        book = Workbook()
        for row in (("customer", "description"), *((number // 2, line) for number, line in enumerate(lines))):
            book.active.append(row)
        book.save(folder / "tickets.xlsx")
        talks = ({"talk": {"id": number // 2}, "turns": [{"said": line}]} for number, line in enumerate(lines))
        (folder / "talks.jsonl").write_text("".join(f"{json.dumps(talk)}\n" for talk in talks), encoding="utf-8")
        with closing(sqlite3.connect(folder / "tickets.db")) as database, database:
            database.execute("CREATE TABLE tickets (body, customer)")
            database.executemany("INSERT INTO tickets VALUES (?, ?)", ((line, n // 2) for n, line in enumerate(lines)))
    for command in run_commands(page):
        shell(command, folder)
        commit(folder)


@pytest.mark.slow
@pytest.mark.timeout(2700)
@pytest.mark.parametrize("page", IN_AN_EXPERIMENT)
def test_commands_run_in_an_experiment(page, experiment, tmp_path):
    folder = copied(experiment, tmp_path)
    for command in run_commands(page):
        shell(command, folder)


@pytest.mark.slow
@pytest.mark.timeout(2700)
def test_the_tutorial_ends_in_a_release(experiment, tmp_path):
    """Steps 5 to 7 as printed, after a review of all lines, then the commands of the last table."""
    folder = copied(experiment, tmp_path)
    reviewed, release, *shared = commands("tutorials/mail")[3:]
    assert parser_of("review").parse_args(shlex.split(reviewed)[2:])
    read_all_lines(folder)
    shell(release, folder)
    assert (folder / "releases/mail-1/DOSSIER.md").is_file()
    shell(f"git config user.name x && git config user.email x@example.org && dvc remote add -d r {tmp_path}/r", folder)
    for command in (
        *shared,
        "palimpsest report",
        *INLINE.findall(NAMES["tutorials/mail"].read_text().split("## Later")[1]),
    ):
        shell(command, folder)
