from collections import Counter
from itertools import pairwise

import pytest

from tasks.corpora.sources import drawn_words
from tasks.corpora.sources.drawn_words import DrawnWordsCorpus

WORDS = {
    "en": {f"w{letter}": 0.1 for letter in "abcdefghij"},
    "ru": {f"с{letter}": 0.1 for letter in "абвгдежзик"},
}
"""English and Russian words differ in their letters."""


@pytest.fixture(autouse=True)
def _listed(monkeypatch):
    monkeypatch.setattr(drawn_words, "published_frequencies", lambda codes: WORDS[codes[0]])


def drawn(**values):
    documents = DrawnWordsCorpus(kind="drawn_words", source="x", **values).open().documents()
    return [text for document in documents for text in document.texts]


def test_rows_have_their_number_and_length_and_frequent_words_are_rarer_than_in_text(monkeypatch):
    monkeypatch.setitem(WORDS, "en", {"the": 0.5, **{f"w{number}": 0.5 / 2**number for number in range(1, 20)}})
    rows = drawn(rows=2000)
    assert len(rows) == 2000
    assert {len(row.split()) for row in rows} == set(range(2, 9))
    assert rows == drawn(rows=2000)
    assert rows != drawn(rows=2000, seed=2)
    words = Counter(" ".join(rows).split())
    assert 0.05 < words["the"] / words.total() < 0.4


@pytest.mark.parametrize(("switches", "fewest", "most"), [("never", 0, 0), ("once", 1, 1), ("often", 0, 7)])
def test_rows_of_two_languages_switch_where_they_should(switches, fewest, most):
    rows = drawn(rows=1000, languages=["en", "ru"], switches=switches)
    languages = [[word.isascii() for word in row.split()] for row in rows]
    assert 400 < sum(row[0] for row in languages) < 600
    changes = [sum(before != after for before, after in pairwise(row)) for row in languages]
    assert fewest == min(changes) <= max(changes) <= most
    # A row has four pairs of words on average.
    assert switches != "often" or 0.14 < sum(changes) / 4000 < 0.18
