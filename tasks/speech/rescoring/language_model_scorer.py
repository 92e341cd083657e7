"""What every kind of language model does for rescoring, and which kind a model is."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from tasks.errors import ParameterError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.model_folder import SETTINGS
from tasks.language_model.vocabulary import END_ID, START_ID, Vocabulary

Words = tuple[str, ...]
"""A hypothesis after normalisation; empty where it has no word."""
Precision = Literal["auto", "float32", "bfloat16"]


class LanguageModelScorer(ABC):
    """A language model that says how probable hypotheses are, each by itself, with the end of its sentence."""

    vocabulary: str
    """Hash of the vocabulary or tokeniser."""

    @abstractmethod
    def log_probabilities(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """Log-probability of each hypothesis (S,), in nats (float64), for each group of distinct ones."""

    @abstractmethod
    def unknown_words(self, words: Words) -> int:
        """How many of the words the model knows only as unknown."""


def has_precision(model: str) -> bool:
    """Whether a model of this folder or name can compute in bfloat16: causal models of Hugging Face's can."""
    from tasks.language_model.language_models import kind_of_folder

    return not (Path(model) / SETTINGS).is_file() or kind_of_folder(model) == "causal_lm"


def open_scorer(model: str, precision: Precision = "auto") -> LanguageModelScorer:
    """The scorer of a model folder of any kind, or of a causal model of Hugging Face's, by folder, package or name.

    Raises ``ModelError`` where the model cannot be found or read, and ``ParameterError`` where its kind computes in
    float32 alone and bfloat16 is asked for.
    """
    from tasks.language_model.language_models import kind_of_folder

    if (Path(model) / SETTINGS).is_file():
        kind = kind_of_folder(model)
        if precision == "bfloat16" and not has_precision(model):
            raise ParameterError(
                f"precision 'bfloat16' is for kind 'causal_lm', and {model!r} is of kind {kind!r}; leave it out"
            )
        match kind:
            case "ngram":
                from tasks.speech.rescoring.ngram_scorer import NgramScorer

                return NgramScorer(model)
            case "transformer":
                from tasks.speech.rescoring.transformer_scorer import TransformerScorer

                return TransformerScorer(model)
    from tasks.speech.rescoring.causal_scorer import CausalScorer

    return CausalScorer(model, precision)


def encode_sentences(sentences: Sequence[Words], vocabulary: Vocabulary) -> EncodedText:
    """Hypotheses as a text of one sentence each, the way that the language models' own scoring takes them."""
    lengths = np.fromiter((len(words) + 2 for words in sentences), dtype=np.int64, count=len(sentences))
    tokens = [token for words in sentences for token in (START_ID, *vocabulary.encode(words), END_ID)]
    return EncodedText(
        tokens=np.array(tokens, dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        lines=np.arange(1, len(sentences) + 1),
        empty_lines=0,
        marker_like=0,
        markers_are_targets=True,
    )


def sentence_sums(values: np.ndarray, text: EncodedText) -> np.ndarray:
    """Sum over the targets of each sentence (S,) of the values of all targets (N,)."""
    targets = np.diff(text.offsets) - 1
    return np.bincount(np.repeat(np.arange(len(targets)), targets), weights=values, minlength=len(targets))
