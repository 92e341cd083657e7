import math
from collections import Counter

import numpy as np
import pytest

from tasks.errors import ModelError, ParameterError
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.sample import DrawOffList
from tasks.filling.methods.top_1 import BestWord
from tasks.filling.methods.top_k import OneOfTheBest, best_candidates
from tasks.filling.methods.unigram import UnigramFiller

DRAWS = 4000
FOUR_SIGMA = 4.0
"""A right sampler misses this tolerance once in 16,000 comparisons; seeds are fixed."""


def scores(*rows):
    return np.array(rows, dtype=np.float32)


def places(count):
    return [Place(line, 0) for line in range(1, count + 1)]


def assert_shares(counts, expected):
    total = sum(counts.values())
    assert set(counts) <= {word for word, share in expected.items() if share}
    for word, share in expected.items():
        sigma = math.sqrt(share * (1 - share) / total)
        assert abs(counts[word] / total - share) <= FOUR_SIGMA * sigma, word


def test_top_1_takes_the_best_and_of_equal_ones_the_first():
    assert BestWord().choose(scores([0, 2, 1], [3, 1, 3]), places(2)).candidates.tolist() == [1, 0]


def test_the_k_best_in_order():
    assert best_candidates(scores([5, 1, 4, 2], [1, 1, 1, 0]), 3).tolist() == [[0, 2, 3], [0, 1, 2]]
    assert best_candidates(scores([5, 1, 4, 2]), 4).tolist() == [[0, 2, 3, 1]]


def test_top_k_draws_the_k_best_equally_often_again_until_one_is_off_the_list():
    for off_list, expected, fallback in (
        ([True] * 5, {0: 1 / 3, 2: 1 / 3, 3: 1 / 3, 1: 0, 4: 0}, False),
        ([False, True, True, False, False], {2: 1, 1: 0}, False),
        # Where all are on the list the first one drawn stays.
        ([False, True, False, False, True], {0: 1 / 3, 2: 1 / 3, 3: 1 / 3}, True),
    ):
        method = OneOfTheBest(3, np.array(off_list), MarkerRandomness(1))
        chosen = method.choose(scores(*[[9, 1, 8, 7, 0]] * DRAWS), places(DRAWS))
        assert_shares(Counter(chosen.candidates.tolist()), expected)
        assert chosen.fallbacks.all() == chosen.fallbacks.any() == fallback


def test_sample_follows_the_distribution_off_the_list():
    for temperature in [1.0, 2.0, 0.5]:
        probabilities = np.array([0.4, 0.3, 0.2, 0.1])
        off_list = np.array([False, True, True, True])
        method = DrawOffList(temperature, off_list, MarkerRandomness(3))
        chosen = method.choose(scores(*[np.log(probabilities)] * DRAWS), places(DRAWS))
        weights = np.where(off_list, probabilities ** (1 / temperature), 0)
        assert_shares(Counter(chosen.candidates.tolist()), dict(enumerate((weights / weights.sum()).tolist())))
        assert not chosen.fallbacks.any()


def test_too_few_words_are_an_error():
    with pytest.raises(ParameterError, match="k=6 is more than the 5 words"):
        OneOfTheBest(6, np.ones(5, dtype=bool), MarkerRandomness(1))
    with pytest.raises(ModelError, match="on the list of kept words"):
        DrawOffList(1.0, np.zeros(3, dtype=bool), MarkerRandomness(1))


def test_unigram_draws_by_frequency_off_the_list():
    frequencies = WordFrequencies.of([("the", 1000), ("Paris", 60), ("paris", 20), ("x", 50), (",", 9), ("mat", 20)])
    kept = KeptWords(["the"])
    filler = UnigramFiller({None: frequencies.shared(kept.off_list(frequencies.words))}, MarkerRandomness(5))
    sentences = [read_masked_line("[MASK]", number, merge_markers=True) for number in range(1, DRAWS + 1)]
    words = Counter(fills[0].word for fills in filler.fill(sentences, lambda _: None))
    assert_shares(words, {"Paris": 0.6, "paris": 0.2, "mat": 0.2})
    assert frequencies.off_list_probabilities(kept) == pytest.approx({"paris": 0.8, "mat": 0.2})


def test_randomness_belongs_to_seed_line_and_marker():
    def draw(seed, line, marker):
        return MarkerRandomness(seed).at(Place(line, marker)).random()

    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(1, 2, 3), draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4), draw(1, 3, 2)}) == 5


def test_kept_words_are_looked_up_folded(tmp_path):
    path = tmp_path / "kept_words.txt"
    path.write_text("the\nCat\n\n", encoding="utf-8")
    kept = KeptWords.read(path)
    assert kept.off_list(["The", "CAT", "dog"]).tolist() == [False, False, True]
    assert not KeptWords.read(None)
    path.write_text("", encoding="utf-8")
    assert not KeptWords.read(path)
    assert KeptWords.read(path).off_list(["the"]).tolist() == [True]
