"""Rescoring of n-best lists: scores that are saved are not computed again, and the choice counts its errors."""

import numpy as np
import pytest

from benchmarks import nbest
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis


class Model:
    """A language model that likes short sentences."""

    asked = 0

    def score_sentences(self, groups):
        Model.asked += sum(map(len, groups))
        return [np.array([-len(words) for words in group], dtype=float) for group in groups]


@pytest.fixture
def scorer(monkeypatch, tmp_path):
    monkeypatch.setattr(nbest, "open_language_model", lambda name: Model())
    Model.asked = 0
    return lambda: nbest.Scorer(tmp_path, "base", [])


def test_scores_are_computed_once(scorer):
    groups = [[("a", "b"), ("a",)], [("a",)]]
    assert scorer()(groups) == [[-2.0, -1.0], [-1.0]]
    first = Model.asked
    assert scorer()([*groups, [("c",)]]) == [[-2.0, -1.0], [-1.0], [-1.0]]
    assert (first, Model.asked) == (3, 4)


def test_a_row_counts_errors_of_the_choice_among_the_first_hypotheses(scorer):
    texts = ("turn left here now", "turn left here", "turn left")
    hypotheses = tuple(ScoredHypothesis(text, -float(rank)) for rank, text in enumerate(texts))

    def lists(n):
        return [NbestList(f"{number}", "turn left here", hypotheses) for number in range(n)]

    alone, two = (nbest.measured("x", size, lists(8), lists(3), each) for size, each in ((1, None), (2, scorer())))
    assert (alone["wer"], two["wer"], two["oracle"]) == (pytest.approx(1 / 3), 0.0, 0.0)
    assert two["difference"] == pytest.approx(-1 / 3)
    assert "| 33.3" in nbest.table([alone, two])
