"""Weights of rescoring, tuned where the right answer is known."""

import numpy as np
import pytest

from tasks.speech.rescoring.hypothesis_table import axes_of, hypothesis_table, tune_weights, with_language_model
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.weight_grid import LM, WORD_COUNT


class CountingScorer:
    """Likes the word good and dislikes the word bad; knows no word that begins with an x."""

    vocabulary_hash = "abcdef0123456789"

    def score_sentences(self, groups):
        return [np.array([float(w.count("good") - 3 * w.count("bad")) for w in group]) for group in groups]

    def unknown_words(self, words):
        return sum(word.startswith("x") for word in words)


def nbest(name, reference, *hypotheses):
    return NbestList(name, reference, tuple(ScoredHypothesis(text, score) for text, score in hypotheses))


def test_the_weight_that_is_needed_is_found():
    # The right one is 4 behind by score and 4 ahead by the language model: a weight over 1 is needed, 1.0 is a tie.
    lists = [nbest("u1", "good", ("bad", 0.0), ("good", -4.0))]
    (table,) = with_language_model([hypothesis_table(lists)], CountingScorer())
    axes = {LM: [0.0, 1.0, 2.0, 4.0], WORD_COUNT: [0.0]}
    tuned = tune_weights(table, axes, 0)
    assert (tuned.weights, tuned.errors, tuned.points) == ({LM: 2.0, WORD_COUNT: 0.0}, 0, 4)
    assert tuned.at_edge == []
    assert tune_weights(table, {LM: [0.0, 2.0]}, 0).at_edge == [LM]
    # All draws of one utterance are the same.
    drawn = tune_weights(table, axes, 20)
    assert (drawn.weights, drawn.deviation) == ({LM: 2.0, WORD_COUNT: 0.0}, {LM: 0.0, WORD_COUNT: 0.0})


def test_weights_are_the_mean_of_what_is_best_on_draws():
    # One utterance needs the weight 2, the other is wrong from 2 on. Where both are drawn or the first alone is not,
    # 0 has as few errors; so 2 is best where the first one is drawn twice: a quarter of the draws.
    lists = [nbest("u1", "good", ("bad", 0.0), ("good", -4.0)), nbest("u2", "day", ("day", 0.0), ("good", -1.0))]
    (table,) = with_language_model([hypothesis_table(lists)], CountingScorer())
    axes = {LM: [0.0, 2.0]}
    tuned = tune_weights(table, axes, 4000)
    assert tuned.weights[LM] == pytest.approx(0.5, abs=0.05)
    assert tuned.deviation[LM] == pytest.approx(2 * (0.25 * 0.75) ** 0.5, abs=0.05)
    assert (tuned.fewest_errors, tuned.errors) == (1, 1)
    assert tune_weights(table, axes, 4000) == tuned
    assert tune_weights(table, axes, 0).weights[LM] == 0.0


def test_nothing_to_gain_leaves_all_weights_at_zero_and_a_bonus_stands_against_deletions():
    (table,) = with_language_model(
        [hypothesis_table([nbest("u1", "bad", ("bad", 0.0), ("good", -1.0))])], CountingScorer()
    )
    tuned = tune_weights(table, axes_of(RescoringSettings(), table), 50)
    assert set(tuned.weights.values()) == {0.0}
    assert tuned.shown() == {"insertion_bonus": 0.0, "lm_weight": 0.0, "unknown_word_bonus": 0.0}
    lists = [nbest("u1", "one two three", ("one two", 0.0), ("one two three", -1.0))]
    tuned = tune_weights(hypothesis_table(lists), {WORD_COUNT: [0.0, 1.5]}, 0)
    assert (tuned.weights, tuned.errors) == ({WORD_COUNT: 1.5}, 0)
