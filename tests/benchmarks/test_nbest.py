"""Rescoring of n-best lists: the choice of a model counts its errors."""

import numpy as np
import pytest

from benchmarks.nbest import measured
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis


class LikesShortSentences:
    """A language model."""

    def score_sentences(self, groups):
        return [np.array([-len(words) for words in group], dtype=float) for group in groups]


def test_a_row_counts_errors_of_the_choice_among_the_first_hypotheses():
    texts = ("turn left here now", "turn left here", "turn left")
    hypotheses = tuple(ScoredHypothesis(text, -float(rank)) for rank, text in enumerate(texts))

    def lists(n):
        return [NbestList(f"{number}", "turn left here", hypotheses) for number in range(n)]

    alone, two = (
        measured("x", size, lists(8), lists(3), model) for size, model in ((1, None), (2, LikesShortSentences()))
    )
    assert (alone["wer"], two["wer"], two["oracle"]) == (pytest.approx(1 / 3), 0.0, 0.0)
    assert two["difference"] == pytest.approx(-1 / 3)
