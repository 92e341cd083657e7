"""Weights of fusion: found on lists, decided by decoding."""

from types import SimpleNamespace

import numpy as np
import pytest
from test_internal_lm import Transducer

from tasks.errors import ParameterError
from tasks.settings.checks import check_settings
from tasks.speech.fusion.tuning import grid_of, middle_of, tuned_weights
from tasks.speech.rescoring.settings import FusionSettings, TuneFusionSettings
from tasks.speech.rescoring.weight_grid import LM, WORD_COUNT, at_edge, mean_of_best
from tasks.speech.search.beam_search import Hypothesis


def test_grid_and_its_middle():
    settings = FusionSettings(
        lm_weights=[0.0, 0.2, 0.4],
        insertion_bonuses=[0.0, 1.0],
        internal_lm="zero_encoder",
        internal_lm_weights=[0.0, 0.1],
    )
    # 3 x 2 x 2 points, without the two that take an internal model off and add no language model.
    assert len(grid_of(settings)) == 10
    assert middle_of(settings) == (0.2, 0.0, 0.0)
    with pytest.raises(ParameterError, match="from 0 on"):
        check_settings(FusionSettings, {"lm_weights": [-0.1]}, "options")


RIGHT, WRONG = (1,), (2,)
PARTS = {RIGHT: (-3.0, -2.0), WRONG: (-2.0, -8.0)}


class Likes:
    """Scores of the right and the wrong word, which the search skips where they have no weight."""

    def start(self, tree, states):
        self.tree = tree

    def extend(self, first):
        """Scores are those of whole sequences."""

    def retain(self, nodes):
        """Nothing is dropped."""

    def end(self, nodes):
        return np.array([PARTS[self.tree.sequence(node)][1] for node in nodes.tolist()])


class Speech:
    """One utterance, whose first word is said."""

    frames, references = (None,), {"u1": "right"}
    encoded = SimpleNamespace(utterance_ids=["u1"])


class Heard:
    """A recogniser of two words."""

    model, hash = Transducer(), "0" * 64
    units = SimpleNamespace(blank=3, decode=lambda units: "right" if units == RIGHT else "wrong")


def tune(monkeypatch, settings, refuted=False):
    """One utterance whose right words the transducer finds less likely by 1 nat, the language model more by 6;
    ``refuted``: the search never finds what the lists promise."""

    def decoded(recogniser, frames, search, fusion):
        weight = dict(fusion.weights).get(LM, 0.0)
        entries = [
            Hypothesis(
                units, score[0] + weight * score[1], score[0], {WORD_COUNT: 1.0} | ({LM: score[1]} if weight else {})
            )
            for units, score in PARTS.items()
            if not refuted or units == WRONG or weight < 0.15
        ]
        return [sorted(entries, key=lambda entry: -entry.score)]

    monkeypatch.setattr("tasks.speech.fusion.tuning.recognise", decoded)
    monkeypatch.setattr(
        "tasks.speech.fusion.tuning.weighted", lambda scorers, weights: SimpleNamespace(weights=weights)
    )
    scorers = {WORD_COUNT: None, LM: Likes()}
    return tuned_weights(scorers, Speech(), TuneFusionSettings(fusion=settings), Heard())


def test_the_smallest_weight_with_the_fewest_errors_wins(monkeypatch):
    settings = FusionSettings(lm_weights=[0.0, 0.05, 0.1, 0.2, 0.5], insertion_bonuses=[0.0], tuning_rounds=3)
    weights, found = tune(monkeypatch, settings)
    # The right words win from 1 / 6 on; the grid's middle, 0.1, is still too little.
    assert weights.point == (0.2, 0.0, 0.0)
    assert [point["lm_weight"] for point in found["grid"]] == settings.lm_weights
    assert [point["wer"] for point in found["grid"]] == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert [point["lm_weight"] for point in found["decoded"]] == [0.0, 0.1, 0.2]


def test_what_decoding_says_counts_not_the_lists(monkeypatch):
    settings = FusionSettings(lm_weights=[0.0, 0.1, 0.2], insertion_bonuses=[0.0])
    weights, found = tune(monkeypatch, settings, refuted=True)
    assert weights.point == (0.0, 0.0, 0.0)
    assert [point["wer"] for point in found["decoded"]] == [1.0, 1.0, 1.0]


def test_the_weights_are_the_mean_of_what_is_best_on_resamples():
    """One utterance wants a weight of 0, the other one of 1. A draw of two holds the second one alone in a quarter of
    all cases. Where it holds both, the first of equal points counts."""
    points = np.array([[0.0, 0.0], [1.0, 0.0]])
    mean, deviation = mean_of_best(points, np.array([[0, 1], [1, 0]]), 10_000, 2)
    assert mean == [pytest.approx(0.25, abs=0.01), 0.0]
    assert deviation == [pytest.approx(0.43, abs=0.01), 0.0]
    assert mean_of_best(points, np.array([[2, 0], [0, 1]]), 0, 2) == ([1.0, 0.0], [0.0, 0.0])


def test_a_weight_at_the_edge_of_its_grid_is_named():
    """Where nothing is subtracted, 0 is no edge but an answer."""
    axes = {"lm_weight": [0.0, 0.5, 1.0], "insertion_bonus": [-1.0, 0.0, 2.0], "internal_lm_weight": [0.0, 0.1, 0.3]}
    for best, expected in [
        ((0.5, 0.0, 0.1), []),
        ((1.0, 0.0, 0.0), ["lm_weight"]),
        ((0.5, 2.0, 0.3), ["insertion_bonus", "internal_lm_weight"]),
        ((0.5, -1.0, 0.0), ["insertion_bonus"]),
    ]:
        assert at_edge(axes, best) == expected
    assert at_edge({"lm_weight": [0.5]}, [0.5]) == []
