"""Weights of rescoring and of fusion: found on lists where the right answer is known, decided by decoding."""

from types import SimpleNamespace

import numpy as np
import pytest

from tasks.errors import ParameterError
from tasks.settings.checks import check_settings
from tasks.speech.fusion import fusion_weights
from tasks.speech.fusion.fusion_weights import NAMES, grid_of, middle_of, tuned_weights
from tasks.speech.rescoring.hypothesis_table import axes_of, hypothesis_table, tune_weights, with_language_model
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis
from tasks.speech.rescoring.settings import FusionSettings, RescoringSettings, TuneFusionSettings
from tasks.speech.rescoring.tuning import BONUS, LM, UNKNOWN
from tasks.speech.search.beam_search import Hypothesis


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
    axes = {LM: [0.0, 1.0, 2.0, 4.0], BONUS: [0.0]}
    tuned = tune_weights(table, axes, 0)
    assert (tuned.weights, table.wer(tuned.weights), len(tuned.points)) == ({LM: 2.0, BONUS: 0.0}, 0, 4)
    assert tuned.at_edge == []
    assert tune_weights(table, {LM: [0.0, 2.0]}, 0).at_edge == [LM]
    # All draws of one utterance are the same.
    drawn = tune_weights(table, axes, 20)
    assert (drawn.weights, drawn.deviation) == ({LM: 2.0, BONUS: 0.0}, {LM: 0.0, BONUS: 0.0})


def test_weights_are_the_mean_of_the_best_on_draws():
    # One utterance needs the weight 2, the other is wrong from 2 on. Where both are drawn or the first alone is not,
    # 0 has as few errors; so 2 is best where the first one is drawn twice: a quarter of the draws.
    table = table_of(NEEDS_MORE_THAN_ONE, ("day", ("day", 0.0), ("good", -1.0)))
    tuned = tune_weights(table, {LM: [0.0, 2.0]}, 4000)
    assert tuned.weights[LM] == pytest.approx(0.5, abs=0.05)
    assert tuned.deviation[LM] == pytest.approx(2 * (0.25 * 0.75) ** 0.5, abs=0.05)
    assert (min(tuned.errors), table.wer(tuned.weights)) == (1, 1 / 2)
    assert tune_weights(table, {LM: [0.0, 2.0]}, 0).weights[LM] == 0.0


def test_without_a_gain_all_weights_are_zero_and_a_bonus_prevents_deletions():
    table = table_of(("bad", ("bad", 0.0), ("good", -1.0)))
    assert tune_weights(table, axes_of(RescoringSettings(), table), 50).weights == {LM: 0.0, BONUS: 0.0, UNKNOWN: 0.0}
    table = table_of(("one two three", ("one two", 0.0), ("one two three", -1.0)))
    tuned = tune_weights(table, {BONUS: [0.0, 1.5]}, 0)
    assert (tuned.weights, tuned.errors) == ({BONUS: 1.5}, [1, 0])


def test_grid_of_fusion_and_its_middle():
    grid = {"lm_weights": [0.0, 0.2, 0.4], "insertion_bonuses": [0.0, 1.0], "internal_lm_weights": [0.0, 0.1]}
    settings = FusionSettings(internal_lm="zero_encoder", **grid)
    # 3 x 2 x 2 points, without the two that take an internal model off and add no language model.
    assert len(grid_of(settings)) == 10
    assert middle_of(settings) == (0.2, 0.0, 0.0)
    with pytest.raises(ParameterError, match="from 0 on"):
        check_settings(FusionSettings, {"lm_weights": [-0.1]}, "options")


RIGHT, WRONG = (1,), (2,)
PARTS = {RIGHT: (-3.0, -2.0), WRONG: (-2.0, -8.0)}


@pytest.mark.parametrize(
    ("lm_weights", "rounds", "refuted", "chosen", "grid", "decoded"),
    [
        # The right words win from 1 / 6 on; the grid's middle, 0.1, is still too little. The smallest weight wins.
        ([0.0, 0.05, 0.1, 0.2, 0.5], 3, False, 0.2, [1.0, 1.0, 1.0, 0.0, 0.0], {0.0: 1.0, 0.1: 1.0, 0.2: 0.0}),
        # Weights that no decoding confirms are not used.
        ([0.0, 0.1, 0.2], 2, True, 0.0, [1.0, 1.0, 0.0], {0.0: 1.0, 0.1: 1.0, 0.2: 1.0}),
    ],
    ids=["the smallest weight with the fewest errors", "refuted by decoding"],
)
def test_weights_of_fusion_are_decided_by_decoding(monkeypatch, lm_weights, rounds, refuted, chosen, grid, decoded):
    """One utterance, whose right words the transducer finds less likely by 1 nat, the language model more by 6;
    ``refuted``: the search never finds the right words with a weight."""

    def heard(recogniser, frames, search, fusion):
        weight = fusion[LM][1] if LM in fusion else 0.0
        entries = [
            Hypothesis(units, own + weight * of_model, own, {BONUS: 1.0, LM: of_model})
            for units, (own, of_model) in PARTS.items()
            if not refuted or units == WRONG or weight < 0.15
        ]
        return [sorted(entries, key=lambda entry: -entry.score)]

    monkeypatch.setattr(fusion_weights, "recognise", heard)
    settings = FusionSettings(lm_weights=lm_weights, insertion_bonuses=[0.0], tuning_rounds=rounds)
    speech = SimpleNamespace(frames=[None], references={"u1": "right"}, utterance_ids=["u1"])
    units = SimpleNamespace(blank=3, decode=lambda units: "right" if units == RIGHT else "wrong")
    recogniser = SimpleNamespace(units=units, hash="0" * 64)
    weights, found = tuned_weights({BONUS: None, LM: None}, speech, TuneFusionSettings(fusion=settings), recogniser)
    assert tuple(weights.by_name[name] for name in NAMES) == (chosen, 0.0, 0.0)
    assert [(point["lm_weight"], point["wer"]) for point in found["grid"]] == list(zip(lm_weights, grid, strict=True))
    assert {point["lm_weight"]: point["wer"] for point in found["decoded"]} == decoded
