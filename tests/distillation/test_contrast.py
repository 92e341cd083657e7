"""Contrastive decoding: bounds that it has by its definition."""

import numpy as np
import torch

from tasks.distillation.contrast import ContrastedWords, Weighted, contrasted_sentences
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.learner import WordLearner
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.next_words import TransformerNextWord
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *(f"word{letter}" for letter in "abcdefghijkl")])
COLUMNS = np.array([END_ID, *range(len(SPECIAL_TOKENS), len(VOCABULARY))])
SIZES = ArchitectureSettings(layers=1, heads=2, width=16, maximum_tokens=16)


def model(seed):
    made = TransformerLanguageModel(SIZES, len(VOCABULARY))
    made.initialise(seed)
    # Far enough from uniform for a mask to hide something.
    made.embedding.weight.data *= 20
    return WordLearner(made, VOCABULARY)


def asked(words, steps=3):
    """Log-probabilities behind growing histories, as a sampler asks for them."""
    words.start(COLUMNS)
    histories, found = np.zeros(2, dtype=np.int64), []
    for step in range(steps):
        found.append(torch.log_softmax(words.scores(histories), dim=1))
        histories = words.extend(histories, COLUMNS[[1 + step, 2 + step]])
    return torch.cat(found)


def plain(base):
    return asked(TransformerNextWord(base.copy().network, VOCABULARY))


def test_without_strength_it_is_the_model_itself():
    base, other = model(1), model(2)
    contrasted = ContrastedWords([Weighted(base, 1.0), Weighted(other, 0.0)])
    torch.testing.assert_close(asked(contrasted), plain(base))


def test_a_model_against_itself_draws_evenly_from_the_mask():
    base = model(1)
    contrasted = asked(ContrastedWords([Weighted(base, 1.0, alpha=0.2), Weighted(base, -1.0)]))
    shown = plain(base) >= plain(base).amax(1, keepdim=True) + np.log(0.2)
    assert 0 < shown.sum() < shown.numel(), "or the mask shows nothing of itself"
    expected = (shown / shown.sum(1, keepdim=True)).log()
    torch.testing.assert_close(contrasted, expected)


def test_each_model_keeps_keys_and_values_of_its_own():
    """What the published code got wrong: behind the first word the contrast was not that of the two models."""
    base, unwanted = model(1), model(2)
    contrasted = asked(ContrastedWords([Weighted(base, 2.0), Weighted(unwanted, -1.0)]))
    torch.testing.assert_close(contrasted, torch.log_softmax(2 * plain(base) - plain(unwanted), dim=1))


def test_sentences_are_a_function_of_the_seed():
    drawn = [contrasted_sentences([Weighted(model(1), 1.0)], 5, 8, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
