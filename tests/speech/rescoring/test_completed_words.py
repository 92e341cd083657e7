"""Causal models in the search: a finished sentence costs what rescoring says, in whatever order words are asked for."""

import numpy as np
import pytest
import torch
from tiny_language_models import save_causal
from tiny_recogniser import Pieces

from tasks.errors import ModelError
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.next_words import BEGINNING, WholeWords
from tasks.language_model.causal_lm.scoring import CausalScorer
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.sequence_tree import SequenceTree
from tasks.speech.fusion.completed_words import LETTER, CompletedWords
from tasks.speech.fusion.unit_scorers import SpelledUnits
from tasks.speech.search.scorer import sentence_scores

PIECES = ["<unk>", "\u2581the", "\u2581c", "at", "\u2581dog", "'", "s", "\u2581"]


class NoPredictor(torch.nn.Module):
    """A transducer of which nobody asks anything."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def predict(self, units, lengths, state):
        return torch.zeros(len(units), 1, 1), lengths, [[torch.zeros(len(units), 1)]]


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


def test_a_unit_sequence_costs_what_its_words_do(causal):
    """Letters cost LETTER each until their word is complete, and what stands for them comes off again."""
    score = CompletedWords(WholeWords(causal), SpelledUnits(Pieces(*PIECES)))
    spelled = [PIECES.index(piece) for piece in ("\u2581the", "\u2581c", "at", "'", "s", "\u2581", "\u2581dog", "'")]
    sequences = [tuple(spelled), tuple(spelled[:3]), ()]
    found = sentence_scores(score, sequences, NoPredictor(), len(PIECES))
    (expected,) = causal.score_sentences([[("the", "cat's", "dog"), ("the", "cat"), ()]])
    assert found == pytest.approx(expected, abs=1e-3)


def test_values_and_estimates(causal):
    tree = SequenceTree(len(PIECES))
    model = WholeWords(causal)
    score = CompletedWords(model, SpelledUnits(Pieces(*PIECES)))
    score.start(tree, None)
    nodes, zero = [np.array([0])], np.zeros(1, dtype=bool)
    for piece, closes in (("\u2581the", False), ("\u2581c", True), ("at", False)):
        unit = np.array([PIECES.index(piece)])
        expected, is_estimate = score.ahead(nodes[-1], unit, zero)
        assert is_estimate.tolist() == [closes]
        node, before = tree.children(nodes[-1], unit)
        score.extend(before)
        if not closes:
            score.settle(node)
        assert score.values(node, ~zero) == pytest.approx(expected)
        score.settle(node)
        nodes.append(node)
    the = model.extend(BEGINNING, "the")
    assert score.values(nodes[1], zero) == pytest.approx(-3 * LETTER)
    assert score.values(nodes[2], zero) == pytest.approx(model.values(np.array([the])) - 1 * LETTER)
    assert score.values(nodes[3], zero) == pytest.approx(model.values(np.array([the])) - 3 * LETTER)


def test_a_model_without_keys_and_values_is_refused(causal):
    class Forgets:
        """Reads, and hands no keys and values on."""

        def __init__(self, model):
            self.model, self.config, self.device, self.dtype = model, model.config, model.device, model.dtype

        def eval(self):
            return self

        def named_children(self):
            return []

        def __call__(self, past_key_values=None, **inputs):
            return self.model(**inputs)

    with pytest.raises(ModelError, match="palimpsest rescore"):
        WholeWords(CausalScorer(CausalModel(Forgets(causal.causal.model), causal.causal.pieces, "it")))
