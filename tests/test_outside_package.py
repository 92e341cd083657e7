"""Strategies that another package brings, by entry points: they are used as our own are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a command in a folder, in a process where the package is installed."""
    site = tmp_path_factory.mktemp("site-packages")
    (site / "outside-1.0.dist-info").mkdir()
    (site / "outside-1.0.dist-info" / "METADATA").write_text("Name: outside\nVersion: 1.0\n")
    (site / "outside-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "outside.py").write_text(MODULE)
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])

    def run(folder, *words):
        command = [sys.executable, "-m", "tasks.cli", *words]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_technique_a_corpus_and_a_method_of_another_package(tmp_path, run):
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    small = {"valid_sentences": 1, "test_sentences": 1}
    document["corpora"]["chat"] = {"kind": "verses", "source": "poems.txt", "cleaning": small}
    document["masking"]["allow_list"] = {"kind": "capitals", "letters": 4}
    document["filling"]["same"] = {"kind": "one_word", "word": "dog"}
    document["compare"]["fills"] = [{"methods": ["same"]}]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "poems.txt").write_text("A ROSE is red\n\nWe like a CAT\n\nThe END of it\n")
    (tmp_path / "text.txt").write_text("I met ANN in OSLO\n")
    (tmp_path / "masked.txt").write_text("[MASK] met the [MASK]\n")
    text, masked = ("--input", "text.txt", "--output", "-"), ("--input", "masked.txt", "--output", "-")
    own = ("--params", "params.yaml")
    for words, shown in [
        (("mask", "--technique", "capitals", *text), "I met [MASK] in [MASK]\n"),
        (("mask", *own, "--technique", "allow_list", *text), "I met ANN in [MASK]\n"),
        (("fill", "--method", "one_word", "--set", "word=cat", *masked), "Cat met the cat\n"),
        (("fill", *own, "--method", "same", *masked, "--report", "report.json"), "Dog met the dog\n"),
    ]:
        assert run(tmp_path, *words) == shown, words
    run(tmp_path, "corpora", *own, "--name", "corpora.chat", "--output", "chat")
    sentences = sorted(line for part in (tmp_path / "chat").glob("*.txt") for line in part.read_text().splitlines())
    assert sentences == ["A ROSE is red", "The END of it", "We like a CAT"]
    for words, shown in [
        (("mask", "--technique", "capitals"), "Words of fewer letters are kept. (default: 2)"),
        (("fill", "--method", "one_word"), "word  It. (default: thing)"),
    ]:
        assert shown in run(tmp_path, *words, "--help")
