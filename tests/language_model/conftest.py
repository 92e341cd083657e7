"""Small texts and models that the tests of the language model share."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tasks.language_model.encoded_text import EncodedText, MarkerUse, encode_text
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.torch_setup import set_up_torch

set_up_torch(1)
WORDS = ("a", "b", "c", "d")


@pytest.fixture
def vocabulary() -> Vocabulary:
    """Four words: a, b, c and d."""
    return Vocabulary((*SPECIAL_TOKENS, *WORDS))


@pytest.fixture
def encoded(tmp_path: Path, vocabulary: Vocabulary) -> Callable[..., EncodedText]:
    """Makes an encoded text of lines."""

    def encode(lines: Sequence[str], markers: MarkerUse = "none") -> EncodedText:
        path = tmp_path / "encoded.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return encode_text(path, vocabulary, markers)

    return encode


@pytest.fixture
def small_model(vocabulary: Vocabulary) -> Callable[..., TransformerLanguageModel]:
    """Makes a model of one layer."""

    def make(seed: int = 1, maximum_tokens: int = 8, size: int | None = None) -> TransformerLanguageModel:
        architecture = ArchitectureSettings(layers=1, heads=2, width=8, maximum_tokens=maximum_tokens)
        model = TransformerLanguageModel(architecture, size or len(vocabulary))
        model.initialise(seed)
        return model

    return make
