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


def test_rows_have_their_number_and_length_and_words_are_more_alike_than_in_text():
    rows = drawn(rows=2000)
    assert len(rows) == 2000
    assert {len(row.split()) for row in rows} == set(range(2, 9))
    assert rows == drawn(rows=2000)
    assert rows != drawn(rows=2000, seed=2)
    frequencies, words = frequencies_of("en"), Counter(" ".join(rows).split())
    assert set(words) <= set(sorted(frequencies, key=lambda word: -frequencies[word])[:20_000])
    assert 0.005 < words["the"] / words.total() < 0.5 * frequencies["the"]


@pytest.mark.parametrize(("switches", "fewest", "most"), [("never", 0, 0), ("once", 1, 1), ("often", 0, 7)])
def test_rows_of_two_languages_switch_where_they_should(monkeypatch, switches, fewest, most):
    """English and Russian words differ in their letters."""
    words = {"en": [f"w{letter}" for letter in "abcdefghij"], "ru": [f"с{letter}" for letter in "абвгдежзик"]}
    monkeypatch.setattr(drawn_words, "published_frequencies", lambda codes: dict.fromkeys(words[codes[0]], 0.1))
    rows = drawn(rows=1000, languages=["en", "ru"], switches=switches)
    languages = [[word.isascii() for word in row.split()] for row in rows]
    assert 400 < sum(row[0] for row in languages) < 600
    changes = [sum(before != after for before, after in pairwise(row)) for row in languages]
    assert fewest == min(changes) <= max(changes) <= most
    # A row has four pairs of words on average.
    assert switches != "often" or 0.14 < sum(changes) / 4000 < 0.18


def test_a_language_without_a_list_is_refused():
    with pytest.raises(ParameterError, match="languages 'xx': wordfreq has no list"):
        drawn(languages=["en", "xx"])
