"""Models as ways to forget see them: joined and steered by their formulas, of words and of pieces."""

import numpy as np
import pytest
import torch
from tiny_causal_models import TEXT, causal_tokenizer, random_llama

from tasks.errors import ModelError
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.pieces import WordPieces
from tasks.language_model.learners import batches
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = Vocabulary([*SPECIAL_TOKENS, *dict.fromkeys(TEXT.lower().split())])
LINES = ["the cat sat on the mat", "tom ran to paris", "ann sat in the red house of rome", "the dog saw the cat"]


def word_learner(seed, layers=2):
    architecture = ArchitectureSettings(layers=layers, heads=2, width=16, maximum_tokens=16)
    made = TransformerLanguageModel(architecture, len(WORDS))
    made.initialise(seed)
    made.embedding.weight.data *= 20
    return WordTransformer(made, WORDS)


def piece_learner(seed):
    tokenizer = causal_tokenizer()
    return CausalModel(random_llama(tokenizer, seed=seed), WordPieces(tokenizer, "tiny"), "tiny")


@pytest.mark.parametrize("make", [word_learner, piece_learner])
def test_joined_and_steered_models_say_what_their_formulas_say(make):
    """The weighted sum of what each says; the last hidden states moved by ``up`` of ``down`` of themselves."""
    one, other = make(1), make(2)
    marked = one.encode(LINES)
    batch, _ = next(batches(marked, one.longest, 10_000, 1))

    def said(learner):
        with torch.no_grad():
            return learner.scores(batch).log_softmax(1)

    both = one.joined([(other, -0.5)], 1.5)
    torch.testing.assert_close(said(both), (1.5 * said(one) - 0.5 * said(other)).log_softmax(1), atol=1e-4, rtol=1e-4)
    # By the scorer too, which shares prefixes: the sums of sentences are those of a text.
    (sums,) = both.scorer().score_sentences([[tuple(line.split()) for line in LINES]])
    alone = np.add.reduceat(both.log_probabilities(marked), marked.text.offsets[:-1])
    np.testing.assert_allclose(sums, alone, rtol=1e-3)
    states = one.states(batch)
    down, up = torch.randn(states.shape[1], 3), torch.randn(3, states.shape[1])
    expected = one.scores_of(states + states @ down @ up).log_softmax(1).detach()
    torch.testing.assert_close(said(one.steered(down, up)), expected, atol=1e-4, rtol=1e-4)


def test_models_of_other_sizes_cannot_be_joined():
    with pytest.raises(ModelError, match="cannot be joined"):
        word_learner(1).joined([(word_learner(1, layers=1), 1.0)], 1.0)
