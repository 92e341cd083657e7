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
    chosen = {"rows": 200, "words": 500, "shortest": 2, "longest": 4}
    rows = drawn(**chosen)
    assert len(rows) == 200
    assert {len(row.split()) for row in rows} == {2, 3, 4}
    assert rows == drawn(**chosen)
    assert rows != drawn(**chosen, seed=2)


def test_words_are_the_most_frequent_ones_and_the_exponent_makes_them_alike():
    """By frequency "the" is about one word in twenty; with exponent 0 one in a hundred."""
    frequencies = frequencies_of("en")
    frequent = set(sorted(frequencies, key=lambda word: -frequencies[word])[:100])
    shares = []
    for exponent in (0.0, 1.0):
        words = Counter(" ".join(drawn(rows=2000, words=100, shortest=5, longest=5, exponent=exponent)).split())
        assert set(words) <= frequent
        shares.append(words["the"] / words.total())
    assert shares[0] == pytest.approx(0.01, abs=0.004)
    assert shares[1] > 0.05


def test_rows_of_two_languages_switch_where_they_should(monkeypatch):
    """English and Russian words differ in their letters."""
    words = {"en": [f"w{letter}" for letter in "abcdefghij"], "ru": [f"с{letter}" for letter in "абвгдежзик"]}
    monkeypatch.setattr(drawn_words, "published_frequencies", lambda codes: dict.fromkeys(words[codes[0]], 0.1))
    changes = {}
    for switches in ("never", "once", "often"):
        rows = drawn(rows=1000, words=10, languages=["en", "ru"], switches=switches, shortest=5, longest=5)
        languages = [[word.isascii() for word in row.split()] for row in rows]
        assert 400 < sum(row[0] for row in languages) < 600
        changes[switches] = [sum(before != after for before, after in pairwise(row)) for row in languages]
    assert (set(changes["never"]), set(changes["once"])) == ({0}, {1})
    assert max(changes["often"]) > 1
    assert 0.14 < sum(changes["often"]) / 4000 < 0.18


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shortest": 5, "longest": 3}, r"shortest \(5\) is above longest \(3\)"),
        ({"switches": "once"}, "switches is 'once' and there is one language"),
        ({"languages": ["en", "xx"]}, "languages 'xx': wordfreq has no list"),
    ],
)
def test_refusals(values, message):
    with pytest.raises(ParameterError, match=message):
        drawn(**values)
