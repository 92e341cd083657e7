"""Log-linear fills: weights that are learned, priors that are adjusted, and the draw."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from masked_sentences import masked
from scripted_model import ScriptedModel

from tasks.errors import CorpusError, ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.estimation import fit_weights, match_frequencies, mean_probabilities
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.places import places_of_corpus, tuning_text
from tasks.filling.masked_lm.weighing import prepared_weighing
from tasks.filling.methods.log_linear import LogLinear, draw_weighed
from tasks.filling.methods.sample import draw
from tasks.filling.prepared_fill import Learned

DRAWS = 4000
FOUR_SIGMA = 4.0
PLANTED_TOLERANCE = 0.05
"""About four standard errors of a weight learned from 20,000 places."""


def assert_shares(counts, expected):
    total = sum(counts.values())
    for word, share in expected.items():
        sigma = math.sqrt(share * (1 - share) / total)
        assert abs(counts[word] / total - share) <= FOUR_SIGMA * sigma + 1e-9, word


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


def test_a_fixed_weight_stays_and_the_others_are_best_beside_it():
    features, targets, width = synthetic([0.7, 0.4, -0.3], number=3000)
    fitted = fit_weights(features, targets, width, [1.5, 0, 0], [False, True, True])
    assert fitted.weights[0] == 1.5
    values = features(slice(0, 3000))
    scores = np.tensordot(fitted.weights, values, axes=1)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    # At the maximum each free feature has the mean that the model expects.
    expected = (values * chances).sum(axis=2).mean(axis=1)
    observed = values[:, np.arange(3000), targets].mean(axis=1)
    assert np.abs(expected - observed)[1:].max() < 1e-4
    assert abs(expected - observed)[0] > 0.1


def test_the_likelihood_of_two_words_by_hand():
    """One feature, 1 for the first word and 0 for the second; the first stands at 3 of 4 places: e^t / (e^t + 1) =
    3/4, so t = log 3."""
    values = np.zeros((1, 4, 2))
    values[0, :, 0] = 1
    fitted = fit_weights(lambda part: values[:, part], np.array([0, 0, 0, 1]), 2, [0.0], [True])
    assert fitted.weights[0] == pytest.approx(math.log(3), abs=1e-3)
    assert fitted.before == pytest.approx(-math.log(2))
    assert fitted.after == pytest.approx(0.75 * math.log(0.75) + 0.25 * math.log(0.25))


def test_places_that_are_told_without_a_mistake_give_no_endless_weight():
    values = np.zeros((1, 4, 2))
    values[0, :, 0] = 1
    fitted = fit_weights(lambda part: values[:, part], np.zeros(4, dtype=int), 2, [0.0], [True])
    assert 5 < fitted.weights[0] < 20
    assert fitted.after == pytest.approx(0, abs=1e-3)


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


def places_of(line, kept="the sat on", *, words="cat mat dog", share=0.15):
    found = tuning_text(
        [line], AllowedWords(kept.split()), {word: i for i, word in enumerate(words.split())}, cased=False, most=99,
        share=share, seed=1,
    )  # fmt: skip
    told = zip(found.places, found.targets, strict=True)
    return [(place.texts, place.slot, words.split()[target]) for place, target in told], found


def test_places_see_the_words_before_them_and_markers_behind_and_a_merged_run_is_context():
    behind = (("The ", " sat on the ", "."), 0, "cat")
    assert places_of("The cat sat on the mat.")[0] == [behind, (("The cat sat on the ", "."), 0, "mat")]
    found, text = places_of("the big cat sat on the mat")
    assert found == [(("the big cat sat on the ", ""), 0, "mat")]
    assert (text.masked_words, text.without_candidate) == (3, 0)
    # Without a list a share of the words is masked.
    assert places_of("the cat sat on the mat and the dog ran", kept="", share=0.3)[1].masked_words == 3


def test_places_of_a_corpus_are_spread_evenly():
    lines = ["[MASK] a [MASK]", "none", "[MASK]", "b [MASK]"]
    assert [(p.texts, p.slot) for p in places_of_corpus(lines, 2)] == [
        (("", " a ", ""), 0),
        (("", ""), 0),
    ]


# The draw --------------------------------------------------------------------------------------------------------


def draws(table, filler, constant, allowed):
    choose = partial(draw_weighed, np.flatnonzero(allowed), filler, np.float32(constant))
    return [
        choose(row.copy(), MarkerRandomness(3).at(place)) for row, place in zip(table, places(len(table)), strict=True)
    ]


def test_with_the_filler_alone_it_is_sample():
    allowed = np.array([False, True, True, True])
    table = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    sample = [
        draw(np.flatnonzero(allowed), 1.0, row, MarkerRandomness(3).at(place))
        for row, place in zip(table, places(200), strict=True)
    ]
    assert draws(table, 1.0, [0, 0, 0, 0], allowed) == sample


def test_with_frequency_alone_it_is_the_draw_by_frequency():
    allowed = np.array([True, True, False, True])
    table = np.random.default_rng(0).normal(size=(DRAWS, 4)).astype(np.float32)
    found = draws(table, 0.0, np.log([0.5, 0.3, 9, 0.2]), allowed)
    assert_shares(Counter(word for word, _ in found), {0: 0.5, 1: 0.3, 3: 0.2, 2: 0})


@pytest.mark.parametrize("weight", [1.0, 0.0, -1.0])
def test_where_every_candidate_is_forbidden_another_word_is_a_fallback(weight):
    table = np.float32([[-np.inf, -np.inf, 0]])
    assert draws(table, weight, [0, 0, 0], np.array([True, False, False])) == [(2, True)]


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


def test_learned_weights_give_the_shares_of_the_tuning_text():
    """The filler says the same everywhere, so whatever the weights, cat and dog get the shares that they have: 1:1."""
    ready = prepared(["the cat sat", "the dog sat"] * 20, weights={"average": 0.0, "frequency": 0.0})
    scores = weighed(ready)
    assert scores[3] == pytest.approx(scores[4], abs=1e-4)
    assert ready.measured["weights"]["filler"] == pytest.approx(0, abs=1e-4)
    assert ready.measured["log_likelihood"] == pytest.approx(math.log(0.5), abs=1e-6)
    assert ready.measured["log_likelihood_before"] == pytest.approx((math.log(0.75) + math.log(0.25)) / 2, abs=1e-5)
    assert ready.measured["tuning_places"] == 40


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
        choose = LogLinear(kind="log_linear").prepare(ready.allowed, Learned(weighing=ready))
        filler = MaskedFiller(model, model.candidates(), {None: choose}, MarkerRandomness(1), batch_sentences=batch)
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
