"""Log-linear fills: the filler's averages, matched frequencies, and the draw."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scripted_model import ScriptedModel

from tasks.errors import CorpusError, ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.places import generic_places
from tasks.filling.masked_lm.weighing import (
    PreparedWeighing,
    match_frequencies,
    prepared_weighing,
)
from tasks.filling.methods.log_linear import LogLinear


def test_matched_frequencies_by_hand():
    """Chances of the first word 0.9 and 0.5, wanted 0.5: 9r / (9r + 1) + r / (r + 1) = 1 where r = 1/3."""
    table = np.log([[0.9, 0.1], [0.5, 0.5]]).astype(np.float32) + np.array([[5], [-3]], dtype=np.float32)
    (first, second), measured = match_frequencies(table, np.array([0, 1]), np.array([0.5, 0.5]))
    assert measured["distance_before"] == pytest.approx(0.2, abs=1e-6)
    assert measured["distance"] <= 0.005
    assert math.exp(first - second) == pytest.approx(1 / 3, rel=0.05)


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


# The draw --------------------------------------------------------------------------------------------------------


def test_where_every_candidate_is_forbidden_another_word_is_a_fallback():
    allowed = np.array([True, False, False])
    weighing = PreparedWeighing(allowed, 1.0, np.zeros(3, dtype=np.float32), {})
    scores = np.float32([-np.inf, -np.inf, 0])
    assert weighing.choose(scores, allowed, MarkerRandomness(3).at(Place(1, 0))) == (2, True)


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
