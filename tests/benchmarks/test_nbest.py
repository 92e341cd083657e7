"""Rescoring of n-best lists: the choice counts its errors."""

import numpy as np
import pytest

from benchmarks import nbest
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis


class Model:
    """A language model that likes short sentences."""

    def score_sentences(self, groups):
        return [np.array([-len(words) for words in group], dtype=float) for group in groups]


def test_a_row_counts_errors_of_the_choice_among_the_first_hypotheses(monkeypatch, tmp_path):
    monkeypatch.setattr(nbest, "open_language_model", lambda name: Model())
    scorer = nbest.Scorer(tmp_path, "base", [])
    texts = ("turn left here now", "turn left here", "turn left")
    hypotheses = tuple(ScoredHypothesis(text, -float(rank)) for rank, text in enumerate(texts))

    def lists(n):
        return [NbestList(f"{number}", "turn left here", hypotheses) for number in range(n)]

    alone, two = (nbest.measured("x", size, lists(8), lists(3), each) for size, each in ((1, None), (2, scorer)))
    assert (alone["wer"], two["wer"], two["oracle"]) == (pytest.approx(1 / 3), 0.0, 0.0)
    assert two["difference"] == pytest.approx(-1 / 3)
    assert "| 33.3" in nbest.table([alone, two])
