"""Causal models in the search: a finished sentence costs what rescoring says, in whatever order words are asked for."""

import numpy as np
import pytest
import torch
from tiny_language_models import save_causal

from tasks.language_model.causal_lm.next_words import BEGINNING, WholeWords
from tasks.language_model.causal_lm.scoring import CausalScorer
from tasks.language_model.model_folder import kind_of_model


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def causal(request, tmp_path_factory):
    torch.set_num_threads(1)
    folder = save_causal(tmp_path_factory.mktemp(request.param), request.param)
    assert kind_of_model(folder) == "causal_lm"
    return CausalScorer.load(folder)


SENTENCES = [("the", "cat"), ("the", "cat", "saw", "anna's", "dog"), ("the", "dog"), (), ("zed",), ("the",) * 30]


def test_sentences_cost_what_rescoring_says(causal):
    words = WholeWords(causal)
    words.start()
    histories = []
    for sentence in SENTENCES:
        history = BEGINNING
        for word in sentence:
            history = words.extend(history, word)
            if len(histories) % 2:
                words.read(np.array([history]))
        histories.append(history)
    ends = words.sentence_ends(np.array(histories))
    (expected,) = causal.score_sentences([SENTENCES])
    assert words.values(np.array(histories)) + ends == pytest.approx(expected, abs=1e-3)
    assert words.extend(words.extend(BEGINNING, "the"), "cat") == histories[0]
    # Behind the model's window of 64 positions a sentence begins anew: one of 100 words has a probability all the same.
    history = BEGINNING
    for _ in range(100):
        history = words.extend(history, "dog")
    found = np.array([history])
    ends = words.sentence_ends(found)
    assert np.isfinite(words.values(found) + ends)
