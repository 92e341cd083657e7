"""Log-linear fills: the filler's averages, matched frequencies, and the draw."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from masked_sentences import masked
from scripted_model import ScriptedModel

from tasks.errors import CorpusError, ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.places import generic_places, places_of_corpus
from tasks.filling.masked_lm.weighing import (
    PreparedWeighing,
    match_frequencies,
    mean_probabilities,
    prepared_weighing,
)
from tasks.filling.methods.log_linear import LogLinear
from tasks.filling.methods.sample import draw

DRAWS = 4000
FOUR_SIGMA = 4.0


def assert_shares(counts, expected):
    total = sum(counts.values())
    for word, share in expected.items():
        sigma = math.sqrt(share * (1 - share) / total)
        assert abs(counts[word] / total - share) <= FOUR_SIGMA * sigma + 1e-9, word


def places(number):
    return [Place(line, 0) for line in range(1, number + 1)]


# Prior -----------------------------------------------------------------------------------------------------------


def test_the_mean_of_probabilities():
    table = np.log([[0.2, 0.8], [0.6, 0.4]])
    table += np.array([[5.0], [-3.0]])
    assert mean_probabilities(table) == pytest.approx([0.4, 0.6])


def test_matched_frequencies_by_hand():
    """Chances of the first word 0.9 and 0.5, wanted 0.5: 9r / (9r + 1) + r / (r + 1) = 1 where r = 1/3."""
    table = np.log([[0.9, 0.1], [0.5, 0.5]]).astype(np.float32) + np.array([[5], [-3]], dtype=np.float32)
    (first, second), measured = match_frequencies(table, np.array([0, 1]), np.array([0.5, 0.5]))
    assert measured["distance_before"] == pytest.approx(0.2, abs=1e-6)
    assert measured["distance"] <= 0.005
    assert math.exp(first - second) == pytest.approx(1 / 3, rel=0.05)


def test_words_of_a_group_keep_their_odds_and_the_groups_are_as_frequent_as_wanted():
    random = np.random.default_rng(1)
    table = random.normal(0, 3, (500, 40)).astype(np.float32)
    groups = np.arange(40) % 7
    wanted = random.dirichlet(np.ones(7))
    log_multipliers, measured = match_frequencies(table, groups, wanted)
    for group in range(7):
        assert np.ptp(log_multipliers[groups == group]) == 0
    chances = np.exp(table + log_multipliers)
    chances /= chances.sum(axis=1, keepdims=True)
    shares = [chances[:, groups == group].sum() / 500 for group in range(7)]
    assert np.abs(shares - wanted).sum() / 2 == pytest.approx(measured["distance"], abs=1e-6)
    assert measured["distance"] <= 0.005 < measured["distance_before"]


# Tuning places ---------------------------------------------------------------------------------------------------


def places_of(line, kept="the sat on"):
    words = {"cat", "mat", "dog"}
    found = generic_places([line], AllowedWords(kept.split()), words, cased=False, most=99)
    return [(place.texts, place.slot) for place in found.places], found


def test_places_see_the_words_before_them_and_markers_after_them_and_a_merged_run_is_context():
    first = (("The ", " sat on the ", "."), 0)
    assert places_of("The cat sat on the mat.")[0] == [first, (("The cat sat on the ", "."), 0)]
    found, text = places_of("the big cat sat on the mat")
    assert found == [(("the big cat sat on the ", ""), 0)]
    assert (text.masked_words, text.without_candidate) == (3, 0)
    # Without a list a share of the words is masked.
    assert places_of("the cat sat on the mat and the dog ran", kept="")[1].masked_words == 2


def test_places_of_a_corpus_are_spread_evenly():
    lines = ["[MASK] a [MASK]", "none", "[MASK]", "b [MASK]"]
    assert [(p.texts, p.slot) for p in places_of_corpus(lines, 2)] == [
        (("", " a ", ""), 0),
        (("", ""), 0),
    ]


# The draw --------------------------------------------------------------------------------------------------------


def draws(table, filler, constant, allowed):
    weighing = PreparedWeighing(allowed, filler, np.float32(constant), {})
    return [
        weighing.choose(row, allowed, MarkerRandomness(3).at(place))
        for row, place in zip(table, places(len(table)), strict=True)
    ]


def test_with_the_filler_alone_it_is_sample():
    allowed = np.array([False, True, True, True])
    table = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    sample = [
        draw(row, allowed, 1.0, MarkerRandomness(3).at(place)) for row, place in zip(table, places(200), strict=True)
    ]
    assert draws(table, 1.0, [0, 0, 0, 0], allowed) == sample


def test_with_frequency_alone_it_is_the_draw_by_frequency():
    allowed = np.array([True, True, False, True])
    table = np.random.default_rng(0).normal(size=(DRAWS, 4)).astype(np.float32)
    found = draws(table, 0.0, np.log([0.5, 0.3, 9, 0.2]), allowed)
    assert_shares(Counter(word for word, _ in found), {0: 0.5, 1: 0.3, 3: 0.2, 2: 0})


def test_where_every_candidate_is_forbidden_another_word_is_a_fallback():
    table = np.float32([[-np.inf, -np.inf, 0]])
    assert draws(table, 1.0, [0, 0, 0], np.array([True, False, False])) == [(2, True)]


# All of it -------------------------------------------------------------------------------------------------------

WORDS = "the a sat cat dog cow"
COUNTS = WordFrequencies(("the", "cat", "dog"), np.array([50, 30, 10]))
KEPT = AllowedWords(["the", "a", "sat"])


def model_of(cat=0.6, dog=0.2):
    return ScriptedModel(WORDS.split(), lambda words, position: {"cat": cat, "dog": dog, "cow": 0.1, "the": 0.1})


def prepared(lines, model=None, corpus=None, frequencies=COUNTS, **settings):
    model = model or model_of()
    return prepared_weighing(
        model, model.candidates(), KEPT, frequencies, LogLinear(kind="log_linear", **settings), lines, corpus
    )


def weighed(ready):
    """The scores of the words where the filler says cat 3:1."""
    return ready.filler_weight * np.log(np.array([1, 1, 1, 0.6, 0.2, 0.1])) + ready.constant


def test_candidates_are_off_the_list_and_in_the_word_counts():
    ready = prepared(["the cat sat"])
    assert [word for word, allowed in zip(WORDS.split(), ready.allowed, strict=True) if allowed] == ["cat", "dog"]
    assert ready.measured["candidates"] == 2


def test_fixed_weights_by_hand():
    """a = 1, b = 1, d = 1: the filler says what it always says, so frequency alone is left, 3:1."""
    ready = prepared(["the cat sat"], weights={"filler": 1, "frequency": 1, "average": 1})
    scores = weighed(ready)
    assert scores[3] - scores[4] == pytest.approx(math.log(3), abs=1e-5)


def test_counted_words_are_written_as_often_as_they_were_counted():
    """The filler says cat 3:1 at both places, and cats were counted 3:1: without more the draw would be 9:1."""
    weights = {"filler": 1, "frequency": 1, "average": 0}
    counted = replace(COUNTS, groups=np.array([-1, 0, 1]))
    lines = ["the [MASK] sat", "a [MASK] sat"]
    ready = prepared(None, corpus=lines, frequencies=counted, prior="counted", weights=weights)
    scores = weighed(ready)
    assert scores[3] - scores[4] == pytest.approx(math.log(3), abs=0.05)
    assert ready.measured["matched_frequencies"]["groups"] == 2
    assert ready.measured["matched_frequencies"]["distance_before"] == pytest.approx(0.9 - 0.75, abs=1e-3)


def test_what_the_filler_cannot_write_makes_no_counted_word_more_frequent():
    """Zebra is in the group of dog, horse in one of its own: of 60 places cat was counted at 20, and has no more."""
    counts = WordFrequencies(
        ("the", "cat", "dog", "zebra", "horse"), np.array([50, 20, 10, 25, 5]), np.array([-1, 0, 2, 2, 1])
    )
    weights = {"filler": 1, "frequency": 1, "average": 0}
    ready = prepared(None, corpus=["the [MASK] sat"], frequencies=counts, prior="counted", weights=weights)
    scores = weighed(ready)
    assert scores[4] - scores[3] == pytest.approx(math.log(2), abs=0.05)


def test_batches_of_any_size_fill_the_same_words():
    ready = prepared(["the cat sat", "a dog sat"] * 5)
    sentences = [masked("the {PERSON:x} sat a {PERSON:x}", number) for number in range(1, 40)]

    def fills(batch):
        model = model_of()
        off_list = {None: ready.allowed}
        filler = MaskedFiller(
            model, model.candidates(), ready.choose, off_list, MarkerRandomness(1), batch_sentences=batch
        )
        return [[fill.word for fill in row] for row in filler.fill(sentences, lambda _: None)]

    assert fills(1) == fills(64)
    assert {word for row in fills(64) for word in row} == {"cat", "dog"}


def test_what_nothing_can_be_learned_from_is_an_error():
    mute = ScriptedModel(["the", "a"], lambda words, position: {})
    damaged = ScriptedModel(WORDS.split(), lambda words, position: {"cat": float("nan")})
    for line, model, error, message in (
        ("the sat a", None, CorpusError, "no masked place of one word"),
        ("the cat", mute, ModelError, "has no word to choose"),
        ("the cat sat", damaged, ModelError, "not numbers"),
    ):
        with pytest.raises(error, match=message):
            prepared([line], model=model)
