"""Weights are found on lists where the right answer is known."""

import numpy as np
import pytest

from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.tuning import BONUS, LM, UNKNOWN, axes_of, hypothesis_table, tune, with_language_model


class CountingScorer:
    """Likes the word good and dislikes the word bad; knows no word that begins with an x."""

    def score_sentences(self, groups):
        return [np.array([float(w.count("good") - 3 * w.count("bad")) for w in group]) for group in groups]

    def unknown_words(self, words):
        return sum(word.startswith("x") for word in words)


def table_of(*lists):
    """Lists of a reference and hypotheses with scores, with the scores of ``CountingScorer``."""
    made = [NbestList(said, said, tuple(ScoredHypothesis(*each) for each in hypotheses)) for said, *hypotheses in lists]
    return with_language_model([hypothesis_table(made)], CountingScorer())[0]


# The right one is 4 behind by score and 4 ahead by the language model: a weight over 1 is needed, 1.0 is a tie.
NEEDS_MORE_THAN_ONE = ("good", ("bad", 0.0), ("good", -4.0))


def test_the_weight_that_is_needed_is_found():
    table = table_of(NEEDS_MORE_THAN_ONE)
    # All draws of one utterance are the same.
    tuned = tune(table, {LM: [0.0, 1.0, 2.0, 4.0], BONUS: [0.0]})
    assert (tuned.weights, table.wer(tuned.weights), len(tuned.points)) == ({LM: 2.0, BONUS: 0.0}, 0, 4)
    assert (tuned.deviation, tuned.at_edge) == ({LM: 0.0, BONUS: 0.0}, [])
    assert tune(table, {LM: [0.0, 2.0]}).at_edge == [LM]


def test_weights_are_the_mean_of_the_best_on_draws():
    # One utterance needs the weight 2, the other is wrong from 2 on. Where both are drawn or the first alone is not,
    # 0 has as few errors; so 2 is best where the first one is drawn twice: a quarter of the draws.
    table = table_of(NEEDS_MORE_THAN_ONE, ("day", ("day", 0.0), ("good", -1.0)))
    tuned = tune(table, {LM: [0.0, 2.0]})
    assert tuned.weights[LM] == pytest.approx(0.5, abs=0.2)
    assert tuned.deviation[LM] == pytest.approx(2 * (0.25 * 0.75) ** 0.5, abs=0.2)
    assert (min(tuned.errors), table.wer(tuned.weights)) == (1, 1 / 2)


def test_without_a_gain_all_weights_are_zero_and_a_bonus_prevents_deletions():
    table = table_of(("bad", ("bad", 0.0), ("good", -1.0)))
    assert tune(table, axes_of(RescoringSettings(), table)).weights == {LM: 0.0, BONUS: 0.0, UNKNOWN: 0.0}
    table = table_of(("one two three", ("one two", 0.0), ("one two three", -1.0)))
    tuned = tune(table, {BONUS: [0.0, 1.5]})
    assert (tuned.weights, tuned.errors) == ({BONUS: 1.5}, [1, 0])
