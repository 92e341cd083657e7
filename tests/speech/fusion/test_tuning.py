"""Weights of fusion: found on lists, decided by decoding."""

import numpy as np
import pytest

from tasks.errors import ParameterError
from tasks.settings.checks import check_settings
from tasks.speech.fusion.shallow_fusion import FusionWeights
from tasks.speech.fusion.tuning import at_edge_of_grid, grid_of, mean_of_best, middle_of, tune
from tasks.speech.rescoring.settings import FusionSettings
from tasks.speech.search.predictor_states import Hypothesis


def test_grid_and_its_middle():
    settings = FusionSettings(
        lm_weights=[0.0, 0.2, 0.4], insertion_bonuses=[0.0, 1.0], internal_lm="lodr", internal_lm_weights=[0.0, 0.1]
    )
    # 3 x 2 x 2 points, without the two that take an internal model off and add no language model.
    assert len(grid_of(settings)) == 10
    assert middle_of(settings) == FusionWeights(0.2, 0.0, 0.0)
    with pytest.raises(ParameterError, match="no use"):
        check_settings(FusionSettings, {"internal_lm_weights": [0.2]}, "options")
    with pytest.raises(ParameterError, match="from 0 on"):
        check_settings(FusionSettings, {"lm_weights": [-0.1]}, "options")


RIGHT, WRONG = (1,), (2,)
PARTS = {RIGHT: (-3.0, -2.0), WRONG: (-2.0, -8.0)}


def decoding(weights):
    """One utterance whose right words the transducer finds less likely by 1 nat, the language model more by 6."""
    entries = [
        Hypothesis(units, score[0] + weights.lm_weight * score[1], score[0], score[1] if weights.lm_weight else 0.0)
        for units, score in PARTS.items()
    ]
    return [sorted(entries, key=lambda entry: -entry.score)]


def completed(lists, weights):
    return [[Hypothesis(h.units, h.score, h.transducer, PARTS[h.units][1]) for h in entries] for entries in lists]


def word_errors(hypotheses):
    return [0 if units == RIGHT else 1 for _, units in hypotheses]


def test_the_smallest_weight_with_the_fewest_errors_wins():
    settings = FusionSettings(lm_weights=[0.0, 0.05, 0.1, 0.2, 0.5], insertion_bonuses=[0.0], tuning_rounds=3)
    found = tune(settings, decoding, completed, word_errors, 1, normalised=False)
    # The right words win from 1 / 6 on; the grid's middle, 0.1, is still too little.
    assert found.weights == FusionWeights(0.2, 0.0, 0.0)
    assert [point["lm_weight"] for point in found.grid] == settings.lm_weights
    assert [point["wer"] for point in found.grid] == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert [point["lm_weight"] for point in found.decoded] == [0.0, 0.1, 0.2]


def test_what_decoding_says_counts_not_the_lists():
    def refuted(weights):
        # The search never finds what the lists promise.
        return [[entry for entry in decoding(weights)[0] if entry.units == WRONG or weights.lm_weight < 0.15]]

    settings = FusionSettings(lm_weights=[0.0, 0.1, 0.2], insertion_bonuses=[0.0])
    found = tune(settings, refuted, completed, word_errors, 1, normalised=False)
    assert found.weights == FusionWeights(0.0, 0.0, 0.0)
    assert [point["wer"] for point in found.decoded] == [1.0, 1.0, 1.0]


def test_the_weights_are_the_mean_of_what_is_best_on_resamples():
    """One utterance wants a weight of 0, the other one of 1. A draw of two holds the second one alone in a quarter of
    all cases. Where it holds both, the first of equal points counts."""
    points = [FusionWeights(0.0, 0.0), FusionWeights(1.0, 0.0)]
    errors = np.array([[0, 1], [1, 0]])
    mean, deviation = mean_of_best(points, errors, 10_000)
    assert mean.lm_weight == pytest.approx(0.25, abs=0.01)
    assert deviation["lm_weight"] == pytest.approx(0.43, abs=0.01)
    assert mean_of_best(points, np.array([[2, 0], [0, 1]]), 0) == (points[1], dict.fromkeys(deviation, 0.0))


def test_a_weight_at_the_edge_of_its_grid_is_named():
    """Where nothing is taken off by an internal model, 0 is no edge but an answer."""
    settings = FusionSettings(
        lm_weights=[0.0, 0.5, 1.0], insertion_bonuses=[-1.0, 0.0, 1.0, 2.0],
        internal_lm="zero_encoder", internal_lm_weights=[0.0, 0.1, 0.3],
    )  # fmt: skip
    for weights, expected in [
        ((0.5, 1.0), []),
        ((1.0, 1.0), ["lm_weight"]),
        ((0.0, 0.0), []),
        ((0.5, 2.0, 0.3), ["insertion_bonus", "internal_lm_weight"]),
        ((0.5, -1.0), ["insertion_bonus"]),
    ]:
        assert at_edge_of_grid(settings, FusionWeights(*weights)) == expected
    alone = FusionSettings(lm_weights=[0.5], insertion_bonuses=[1.0])
    assert at_edge_of_grid(alone, FusionWeights(0.5, 1.0)) == []
