"""Counts of words, frequencies as they are published, and text that is drawn from them."""

from collections import Counter

import pytest

from tasks.cli import main
from tasks.corpora.sources import drawn_words
from tasks.corpora.sources.drawn_words import DrawnWordsCorpus
from tasks.corpora.sources.published_frequencies import blend_counts

COUNTS = {"the": 6, "Nice": 3, "nice": 1}


def test_counts_are_cased_and_in_order_and_a_refusal_leaves_them(tmp_path, capsys):
    text, counts = tmp_path / "text.txt", tmp_path / "counts.tsv"
    command = ["count-words", "--input", str(text), "--output", str(counts)]
    text.write_text("The cat, the dog.\nthe cat's Dog!\n\n")
    assert main(command) == 0
    assert counts.read_text() == "cat\t2\nthe\t2\nDog\t1\nThe\t1\ndog\t1\n"
    capsys.readouterr()
    assert main([*command, "--set", "published_languages=[en, cy]"]) == 1
    assert "cy: no published frequencies; give some of ar, " in capsys.readouterr().err
    assert counts.read_text().startswith("cat\t2")


def test_published_words_weigh_their_share():
    # Ten words are counted: at one half the list is ten more, 1 "the", 5 "yeah", 4 "nice", of which one is small.
    blended = blend_counts(COUNTS, {"the": 0.1, "yeah": 0.5, "nice": 0.4}, 0.5)
    assert blended == {"the": 7, "Nice": 6, "nice": 2, "yeah": 5}
    assert blend_counts(COUNTS, {"the": 0.5, "yeah": 0.5}, 0.0) == COUNTS
    assert blend_counts(COUNTS, {"the": 0.5, "yeah": 0.5}, 1.0) == {"the": 5, "yeah": 5}
    assert "rare" not in blend_counts(COUNTS, {"rare": 0.01}, 0.5)


WORDS = {
    "en": {f"w{letter}": 0.1 for letter in "abcdefghij"},
    "ru": {f"с{letter}": 0.1 for letter in "абвгдежзик"},
}
"""English and Russian words differ in their letters."""


@pytest.fixture
def drawn(monkeypatch):
    """Rows of a corpus that knows only these words."""
    monkeypatch.setattr(drawn_words, "published_frequencies", lambda codes: WORDS[codes[0]])

    def drawn(**values):
        documents = DrawnWordsCorpus(kind="drawn_words", source="x", **values).open().documents()
        return [text for document in documents for text in document.texts]

    return drawn


def test_rows_have_their_number_and_length_and_frequent_words_are_rarer_than_in_text(monkeypatch, drawn):
    monkeypatch.setitem(WORDS, "en", {"the": 0.5, **{f"w{number}": 0.5 / 2**number for number in range(1, 20)}})
    rows = drawn(rows=2000)
    assert len(rows) == 2000
    assert {len(row.split()) for row in rows} == set(range(2, 9))
    assert rows == drawn(rows=2000)
    assert rows != drawn(rows=2000, seed=2)
    words = Counter(" ".join(rows).split())
    assert 0.05 < words["the"] / words.total() < 0.4
