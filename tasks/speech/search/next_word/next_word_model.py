"""What a fusion asks of a word-level language model: the next word's distribution behind many histories."""

from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from tasks.errors import ModelError
from tasks.language_model.language_models import kind_of_folder
from tasks.language_model.vocabulary import Vocabulary


class NextWordModel(Protocol):
    """Histories are numbers; 0 is the beginning of a sentence. Equal histories have equal numbers."""

    vocabulary: Vocabulary

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories. ``columns`` (C,): ids of the vocabulary in the order that answers stand in."""

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one word more (N,), by its id; nothing is computed yet."""

    def read(self, histories: np.ndarray) -> None:
        """Compute what ``scores`` will need of all these histories (N,) at once; it does so itself where this did not,
        for as many as it is asked for."""

    def scores(self, histories: np.ndarray) -> Tensor:
        """Of every token as the next one (N, C) float32 on the processor: log-probabilities in nats, but for a constant
        of each row. Columns are as ``start`` was told; the answer is the caller's to write on."""


def log_probabilities(model: NextWordModel, histories: np.ndarray) -> Tensor:
    """Of every token as the next one (N, V), in nats; the columns that ``start`` was told must hold each token once."""
    return torch.log_softmax(model.scores(histories), dim=1)


def load_next_word_model(folder: str | Path) -> NextWordModel:
    """The model of a folder of kind ``transformer`` or ``ngram``; ``ModelError`` for another kind."""
    match kind := kind_of_folder(folder):
        case "transformer":
            from tasks.speech.search.next_word.transformer_model import TransformerNextWord

            return TransformerNextWord.load(folder)
        case "ngram":
            from tasks.speech.search.next_word.ngram_model import NgramNextWord

            return NgramNextWord.load(folder)
    raise ModelError(
        f"model folder {str(folder)!r} is of kind {kind!r}, which has pieces of its own in place of a vocabulary of "
        "words; fuse a model of kind 'transformer' or 'ngram', or use this one with 'palimpsest rescore'"
    )
