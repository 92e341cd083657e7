"""Log-linear fills: weights that are learned, priors that are adjusted, and the draw."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scripted_model import ScriptedModel

from tasks.errors import CorpusError, ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_lm.estimation import fit_weights, match_frequencies
from tasks.filling.masked_lm.weighing import prepared_weighing
from tasks.filling.methods.log_linear import LogLinear

PLANTED_TOLERANCE = 0.05
"""About four standard errors of a weight learned from 20,000 places."""


def places(number):
    return [Place(line, 0) for line in range(1, number + 1)]


# Weights ---------------------------------------------------------------------------------------------------------


def synthetic(planted, number=20_000, width=12):
    random = np.random.default_rng(3)
    values = random.normal(size=(len(planted), number, width))
    values[1:] = values[1:, :1]  # all but the first say the same of a word at every place
    scores = np.tensordot(planted, values, axes=1)
    targets = (scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    return (lambda part: values[:, part]), targets, width


def test_planted_weights_are_found():
    features, targets, width = synthetic([0.7, 0.4, -0.3])
    fitted = fit_weights(features, targets, width, [1, 0, 0], [True] * 3)
    assert np.abs(fitted.weights - [0.7, 0.4, -0.3]).max() < PLANTED_TOLERANCE
    assert fitted.after > fitted.before


def test_the_likelihood_of_two_words_by_hand():
    """One feature, 1 for the first word and 0 for the second; the first stands at 3 of 4 places: e^t / (e^t + 1) =
    3/4, so t = log 3."""
    values = np.zeros((1, 4, 2))
    values[0, :, 0] = 1
    fitted = fit_weights(lambda part: values[:, part], np.array([0, 0, 0, 1]), 2, [0.0], [True])
    assert fitted.weights[0] == pytest.approx(math.log(3), abs=1e-3)
    assert fitted.before == pytest.approx(-math.log(2))
    assert fitted.after == pytest.approx(0.75 * math.log(0.75) + 0.25 * math.log(0.25))


# Prior -----------------------------------------------------------------------------------------------------------


def test_matched_frequencies_by_hand():
    """Chances of the first word 0.9 and 0.5, wanted 0.5: 9r / (9r + 1) + r / (r + 1) = 1 where r = 1/3."""
    table = np.log([[0.9, 0.1], [0.5, 0.5]]).astype(np.float32) + np.array([[5], [-3]], dtype=np.float32)
    (first, second), measured = match_frequencies(table, np.array([0, 1]), np.array([0.5, 0.5]))
    assert measured["distance_before"] == pytest.approx(0.2, abs=1e-6)
    assert measured["distance"] <= 0.005
    assert math.exp(first - second) == pytest.approx(1 / 3, rel=0.05)


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


def test_learned_weights_give_the_shares_of_the_tuning_text():
    """The filler says the same everywhere, so whatever the weights, cat and dog get the shares that they have: 1:1."""
    ready = prepared(["the cat sat", "the dog sat"] * 20, weights={"average": 0.0, "frequency": 0.0})
    scores = weighed(ready)
    assert scores[3] == pytest.approx(scores[4], abs=1e-4)
    assert ready.measured["weights"]["filler"] == pytest.approx(0, abs=1e-4)
    assert ready.measured["log_likelihood"] == pytest.approx(math.log(0.5), abs=1e-6)
    assert ready.measured["log_likelihood_before"] == pytest.approx((math.log(0.75) + math.log(0.25)) / 2, abs=1e-5)
    assert ready.measured["tuning_places"] == 40


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
