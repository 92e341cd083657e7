from collections import Counter

import pytest

from tasks.corpora.sources.drawn_words import DrawnWords
from tasks.corpora.sources.published_frequencies import published_frequencies
from tasks.errors import ParameterError
from tasks.settings.checks import check_settings


def rows_of(source):
    return [text for document in source.documents() for text in document.texts]


def test_rows_have_their_number_and_length_and_come_again_the_same():
    source = DrawnWords(rows=200, words=500, shortest=2, longest=4, exponent=0.7, seed=1)
    rows = rows_of(source)
    assert len(rows) == 200
    assert {len(row.split()) for row in rows} == {2, 3, 4}
    assert rows == rows_of(source)
    assert rows != rows_of(DrawnWords(200, 500, 2, 4, 0.7, seed=2))


def test_words_are_the_most_frequent_ones():
    frequencies = published_frequencies()
    frequent = set(sorted(frequencies, key=lambda word: -frequencies[word])[:50])
    rows = rows_of(DrawnWords(rows=300, words=50, shortest=5, longest=5, exponent=1.0, seed=1))
    assert {word for row in rows for word in row.split()} <= frequent


def test_the_exponent_makes_words_alike():
    """By frequency "the" is about one word in twenty; with exponent 0 one in a hundred."""

    def share(exponent):
        words = " ".join(rows_of(DrawnWords(2000, 100, 5, 5, exponent, seed=1))).split()
        return Counter(words)["the"] / len(words)

    assert share(0.0) == pytest.approx(0.01, abs=0.004)
    assert share(1.0) > 0.05


def test_limits_in_the_wrong_order_are_named():
    from tasks.corpora.sources.drawn_words import DrawnWordsCorpus

    values = {"kind": "drawn_words", "source": "constraints.txt", "shortest": 5, "longest": 3}
    with pytest.raises(ParameterError, match=r"shortest \(5\) is above longest \(3\)"):
        check_settings(DrawnWordsCorpus, values, "speech.text")
