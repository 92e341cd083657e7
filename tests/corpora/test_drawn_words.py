from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

from tasks.corpora.sources import drawn_words
from tasks.corpora.sources.drawn_words import DrawnWordsCorpus
from tasks.corpora.sources.published_frequencies import published_frequencies
from tasks.errors import ParameterError
from tasks.settings.checks import check_settings

frequencies_of = cache(lambda language: published_frequencies([language]))


@pytest.fixture(autouse=True)
def _listed_once(monkeypatch):
    monkeypatch.setattr(drawn_words, "published_frequencies", lambda languages: frequencies_of(*languages))


def drawn(**values):
    settings = {"kind": "drawn_words", "source": "x", **values}
    documents = check_settings(DrawnWordsCorpus, settings, "speech.text").open().documents()
    return [text for document in documents for text in document.texts]


def test_rows_have_their_number_and_length_and_come_again_the_same():
    rows = drawn(rows=200)
    assert len(rows) == 200
    assert {len(row.split()) for row in rows} == set(range(2, 9))
    assert rows == drawn(rows=200)
    assert rows != drawn(rows=200, seed=2)


def test_words_are_the_most_frequent_ones_and_more_alike_than_in_text():
    frequencies = frequencies_of("en")
    words = Counter(" ".join(drawn(rows=2000)).split())
    assert set(words) <= set(sorted(frequencies, key=lambda word: -frequencies[word])[:20_000])
    assert 0.005 < words["the"] / words.total() < 0.5 * frequencies["the"]


def test_rows_of_two_languages_switch_where_they_should(monkeypatch):
    """English and Russian words differ in their letters."""
    words = {"en": [f"w{letter}" for letter in "abcdefghij"], "ru": [f"с{letter}" for letter in "абвгдежзик"]}
    monkeypatch.setattr(drawn_words, "published_frequencies", lambda codes: dict.fromkeys(words[codes[0]], 0.1))
    changes = {}
    for switches in ("never", "once", "often"):
        rows = drawn(rows=1000, languages=["en", "ru"], switches=switches)
        languages = [[word.isascii() for word in row.split()] for row in rows]
        assert 400 < sum(row[0] for row in languages) < 600
        changes[switches] = [sum(before != after for before, after in pairwise(row)) for row in languages]
    assert (set(changes["never"]), set(changes["once"])) == ({0}, {1})
    assert max(changes["often"]) > 1
    # A row has four pairs of words on average.
    assert 0.14 < sum(changes["often"]) / 4000 < 0.18


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"switches": "once"}, "switches is 'once' and there is one language"),
        ({"languages": ["en", "xx"]}, "languages 'xx': wordfreq has no list"),
    ],
)
def test_refusals(values, message):
    with pytest.raises(ParameterError, match=message):
        drawn(**values)
