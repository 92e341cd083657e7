"""Small texts and models that the tests of the language model share."""

import pytest

from tasks.language_model.encoded_text import encode_text
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.torch_setup import set_up_torch

set_up_torch(1)


@pytest.fixture(scope="session")
def vocabulary():
    """Four words: a, b, c and d."""
    return Vocabulary((*SPECIAL_TOKENS, *"abcd"))


@pytest.fixture(scope="session")
def encoded(vocabulary):
    """Makes an encoded text of lines."""
    return lambda lines, markers="none": encode_text(lines, vocabulary, markers)


@pytest.fixture(scope="session")
def small_model(vocabulary):
    """Makes a model of one layer, or of another architecture."""

    def make(seed=1, **sizes):
        architecture = ArchitectureSettings(**{"layers": 1, "heads": 2, "width": 8, "maximum_tokens": 8} | sizes)
        model = TransformerLanguageModel(architecture, len(vocabulary))
        model.initialise(seed)
        return model

    return make
