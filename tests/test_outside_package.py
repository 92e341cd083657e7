"""Strategies that another package brings, by entry points: they are used as our own are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TESTS = Path(__file__).parent
ENTRY_POINTS = """\
[palimpsest.techniques]
capitals = outside:Capitals
[palimpsest.corpora]
verses = outside:Verses
[palimpsest.filling_methods]
one_word = outside:OneWord
"""
MODULE = '''
from typing import ClassVar, Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document
from tasks.corpora.text_lines import read_lines
from tasks.corpora.words import word_spans
from tasks.filling.settings import FillingMethod
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import Finding, Technique


class Capitals(TechniqueSettings):
    """Mask words that are written in capitals."""

    sentence: ClassVar[str] = "Mask what is shouted."
    kind: Literal["capitals"]
    letters: int = 2
    """Words of fewer letters are kept."""

    def build(self, word_counts, threads):
        return Shouted(self.letters)


class Shouted(Technique):
    name = "capitals"

    def __init__(self, letters):
        self.letters = letters

    def findings(self, lines):
        for line in lines:
            found = [(start, end) for start, end in word_spans(line) if line[start:end].isupper()]
            yield line, [Finding(s, e, "MASK", "capitals") for s, e in found if e - s >= self.letters]


class OneWord(FillingMethod):
    """Write the same word everywhere."""

    title: ClassVar[str] = "One word"
    sentence: ClassVar[str] = "The same word everywhere."
    kind: Literal["one_word"]
    word: str = "thing"
    """It."""

    def build(self, prepared):
        return Same(self.word), prepared.words.casing(is_cased=True)


class Same:
    forward_seconds, candidate_count = None, 1

    def __init__(self, word):
        self.word = word

    def fill(self, sentences, advance):
        from tasks.filling.masked_sentence import Fill

        return [[Fill(self.word) for _ in sentence.slots] for sentence in sentences]


class Verses(CorpusSettings):
    """A text whose poems are divided by empty lines."""

    kind: Literal["verses"]

    def open(self):
        return Poems(self.source)


class Poems:
    parts = (None,)

    def __init__(self, path):
        self.path, self.files = path, [path]

    def documents(self, part=None):
        poem = []
        for line in [*read_lines(self.path), ""]:
            if line:
                poem.append(line)
            elif poem:
                yield Document(poem)
                poem = []
'''


SERVER = """
import json, sys
from pathlib import Path
from forked_commands import forked
from tasks.cli import load_command, main
for line in sys.stdin:
    folder, words = json.loads(line)
    if words[0] == "-c":
        command = lambda: exec(words[1]) or 0
    else:
        load_command(words[0])
        command = lambda: main(words)
    done = forked(command, Path(folder), {})
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""
"""Runs commands in forks of itself: each sees the package as a process of its own would."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A process where the package is installed."""
    site = tmp_path_factory.mktemp("site-packages")
    (site / "outside-1.0.dist-info").mkdir()
    (site / "outside-1.0.dist-info" / "METADATA").write_text("Name: outside\nVersion: 1.0\n")
    (site / "outside-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "outside.py").write_text(MODULE)
    path = os.pathsep.join([str(site), *map(str, (TESTS, TESTS.parent)), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVER], env=environment, stdin=pipe, stdout=pipe, text=True) as made:
        yield made
        made.stdin.close()


@pytest.fixture
def run(server, tmp_path):
    """Runs a command in the folder of the test."""

    def run(*words):
        print(json.dumps([str(tmp_path), words]), file=server.stdin, flush=True)
        return subprocess.CompletedProcess(words, *json.loads(server.stdout.readline()))

    return run


def test_a_technique_of_another_package(tmp_path, run):
    (tmp_path / "text.txt").write_text("I met ANN in OSLO\n")
    files = ["--input", "text.txt", "--output", "-"]
    assert run("mask", "--technique", "capitals", *files).stdout == "I met [MASK] in [MASK]\n"
    assert run("mask", "--technique", "capitals", "--set", "letters=4", *files).stdout == "I met ANN in [MASK]\n"
    both = ["--set", "rule=intersection", "--set", "parts=[{kind: capitals}, {kind: allow_list}]"]
    assert run("mask", "--technique", "combination", *both, *files).stdout == "I met [MASK] in [MASK]\n"
    assert "Mask what is shouted." in run("mask", "--help").stdout
    assert "Words of fewer letters are kept. (default: 2)" in run("mask", "--technique", "capitals", "--help").stdout


def test_a_corpus_and_a_technique_by_the_parameter_file(tmp_path, run):
    with open("params.yaml", encoding="utf-8") as stream:
        document = yaml.safe_load(stream)
    small = {"valid_sentences": 1, "test_sentences": 1}
    document["corpora"]["chat"] = {"kind": "verses", "source": "poems.txt", "cleaning": small}
    document["masking"]["allow_list"] = {"kind": "capitals", "letters": 4}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "poems.txt").write_text("A ROSE is red\n\nWe like a CAT\n\nThe END of it\n")
    given = ["--params", "params.yaml", "--name", "corpora.chat", "--output", "chat"]
    result = run("corpora", *given)
    assert result.returncode == 0, result.stderr
    sentences = (tmp_path / "chat").glob("*.txt")
    assert sorted(line for part in sentences for line in part.read_text().splitlines()) == [
        "A ROSE is red",
        "The END of it",
        "We like a CAT",
    ]
    asked = ["--params", "params.yaml", "--technique", "allow_list", "--input", "poems.txt", "--output", "-"]
    assert run("mask", *asked).stdout.splitlines()[0] == "A [MASK] is red"


def test_a_filling_method_by_its_options_the_parameter_file_and_on_the_page(tmp_path, run):
    (tmp_path / "masked.txt").write_text("[MASK] met the [MASK]\n")
    files = ["--input", "masked.txt", "--output", "-"]
    assert run("fill", "--method", "one_word", *files).stdout == "Thing met the thing\n"
    assert run("fill", "--method", "one_word", "--set", "word=cat", *files).stdout == "Cat met the cat\n"
    assert "uses no filler" in run("fill", "--method", "one_word", "--filler", "x", *files).stderr
    assert "The same word everywhere." in run("fill", "--help").stdout
    assert "word  It. (default: thing)" in run("fill", "--method", "one_word", "--help").stdout
    with open("params.yaml", encoding="utf-8") as stream:
        document = yaml.safe_load(stream)
    document["filling"]["same"] = {"kind": "one_word", "word": "dog"}
    document["compare"]["fills"] = [{"methods": ["same"]}]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document))
    named = run("fill", "--params", "params.yaml", "--method", "same", *files, "--report", "report.json")
    assert named.stdout == "Dog met the dog\n", named.stderr
    asked = "[t.method_name('one_word'), t.sentence_of('same', 'one_word')]"
    shown = run("-c", f"from tasks.results import titles as t; print({asked})")
    assert shown.stdout == "['One word', 'The same word everywhere.']\n"
