"""A corpus and a method that another package brings, by entry points. ``tests/docs`` does so for a technique."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ENTRY_POINTS = """\
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
from tasks.filling.settings import FillingMethod


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


AS_COMMANDS = """
import sys
from tasks import cli
for command in sys.argv[1:]:
    try:
        status = cli.main(command.split())
    except SystemExit as end:
        status = end.code
    if status:
        sys.exit(status)
    print(end="\\0")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs commands in a folder, in one process where the package is installed; what each wrote."""
    site = tmp_path_factory.mktemp("site-packages")
    (site / "outside-1.0.dist-info").mkdir()
    (site / "outside-1.0.dist-info" / "METADATA").write_text("Name: outside\nVersion: 1.0\n")
    (site / "outside-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "outside.py").write_text(MODULE)
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])

    def run(folder, *commands):
        given = [sys.executable, "-c", AS_COMMANDS, *commands]
        known = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(given, cwd=folder, env=known, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\0")[:-1]

    return run


def test_a_corpus_and_a_method_of_another_package(tmp_path, run):
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    small = {"valid_sentences": 1, "test_sentences": 1}
    document["corpora"]["chat"] = {"kind": "verses", "source": "poems.txt", "cleaning": small}
    document["filling"]["same"] = {"kind": "one_word", "word": "dog"}
    document["compare"]["fills"] = [{"methods": ["same"]}]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "poems.txt").write_text("A ROSE is red\n\nWe like a CAT\n\nThe END of it\n")
    (tmp_path / "masked.txt").write_text("[MASK] met the [MASK]\n")
    *filled, _, help_of_fill = run(
        tmp_path,
        "fill --method one_word --set word=cat --input masked.txt --output -",
        "fill --params params.yaml --method same --input masked.txt --output - --report report.json",
        "corpora --params params.yaml --name corpora.chat --output chat",
        "fill --method one_word --help",
    )
    assert filled == ["Cat met the cat\n", "Dog met the dog\n"]
    sentences = sorted(line for part in (tmp_path / "chat").glob("*.txt") for line in part.read_text().splitlines())
    assert sentences == ["A ROSE is red", "The END of it", "We like a CAT"]
    assert "word  It. (default: thing)" in help_of_fill
