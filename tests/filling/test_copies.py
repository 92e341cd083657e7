"""A corpus that is filled several times: copies that differ, each as whole as one fill, and what they give back
together."""

import json
import random

import pytest
from pydantic import TypeAdapter, ValidationError
from stage_commands import settings as keys

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.filling import filled_lines
from tasks.filling.methods import AnyMethod

LINES = 41
COUNTS = {"apple": 5, "pear": 3, "plum": 2}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Each place hides one of three words; ``masked.txt``, ``sidecar.jsonl`` and ``word_counts.tsv`` in the folder."""
    monkeypatch.setattr(filled_lines, "PART_LINES", 10)
    dice = random.Random(3)
    lines, spans = [], []
    for number in range(LINES):
        words = dice.choices(list(COUNTS), k=number % 3)
        lines.append(" ".join([f"line {number}:", *("[MASK] and" for _ in words)]))
        spans.append([MaskedSpan(2 + 2 * i, 3 + 2 * i, "MASK", "list", word, i) for i, word in enumerate(words)])
    (tmp_path / "masked.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "word_counts.tsv").write_text("".join(f"{w}\t{n}\n" for w, n in COUNTS.items()), encoding="utf-8")
    write_sidecar(tmp_path / "sidecar.jsonl", spans)
    monkeypatch.chdir(tmp_path)
    return [[span.original for span in line] for line in spans]


def fill(output, *options):
    arguments = ["fill", "--input", "masked.txt", "--output", output, "--method", "unigram"]
    assert main([*arguments, "--word-counts", "word_counts.tsv", "--report", f"{output}.json", *options]) == 0
    with open(output, encoding="utf-8") as lines:
        return lines.read().splitlines()


def fills_of(line):
    """The words that stand in a filled line of the corpus."""
    return [word for word in line.split(":")[1].split() if word != "and"]


def report(name):
    with open(f"{name}.json", encoding="utf-8") as text:
        return json.load(text)


def test_each_copy_is_a_fill_of_its_own_and_the_first_that_of_one(corpus):
    one, three = fill("one.txt"), fill("three.txt", *keys("copies=3"))
    copies = [three[start : start + LINES] for start in range(0, 3 * LINES, LINES)]
    assert copies[0] == one
    assert len({tuple(copy) for copy in copies}) == 3
    for copy in copies:
        assert [line.split(":")[0] for line in copy] == [f"line {number}" for number in range(LINES)]
        assert [len(fills_of(line)) for line in copy] == [len(words) for words in corpus]
    measured = report("three.txt")["measured"]
    assert measured["lines"] == 3 * LINES
    assert measured["fills"] == 3 * report("one.txt")["measured"]["fills"]
    assert report("three.txt")["parameters"]["copies"] == 3


def test_a_word_that_any_copy_gives_back_is_given_back(corpus):
    three = fill("three.txt", *keys("copies=3"), "--sidecar", "sidecar.jsonl")
    places = restored = guessed = 0
    for number, originals in enumerate(corpus):
        written = [fills_of(three[number + copy * LINES]) for copy in range(3)]
        for slot, original in enumerate(originals):
            places += 1
            restored += any(words[slot] == original for words in written)
            guessed += 1 - (1 - COUNTS[original] / 10) ** 3
    overall = report("three.txt")["measured"]["restoration"]["overall"]
    # Rounded to steps of five places, and of five times what the most frequent word adds.
    assert max(abs(overall["places"] - places), abs(overall["restored"] - restored)) < 5
    assert places > restored > places / 2
    assert overall["expected_by_frequency"] * overall["places"] == pytest.approx(guessed, abs=5 * 0.875)


def test_copies_that_would_be_the_same_are_refused():
    for settings, says in [
        ({"kind": "top_k", "k": 1}, "top_k with k=1 takes the best word, so that copies=2 would be the same text 2"),
        ({"kind": "surrogate", "consistent_within": "corpus"}, "gives a word the same surrogate in each of them"),
        ({"kind": "surrogate", "consistent_within": "document"}, "set consistent_within: line, or leave copies out"),
        ({"kind": "top_1"}, "top_1 takes the best word, so that copies=2 would be the same text 2 times; use"),
        ({"kind": "free"}, "free takes the model's best sentence, so that copies=2"),
    ]:
        check = TypeAdapter(AnyMethod).validate_python
        assert check(settings).copies == 1
        with pytest.raises(ValidationError) as error:
            check({**settings, "copies": 2})
        assert says in str(error.value)
