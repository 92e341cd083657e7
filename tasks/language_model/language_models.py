"""What every kind of language model can be asked, and the model of a folder or a name.

A perplexity scores a text, rescoring scores sentences, and the beam search asks for next words; the three are the same
model, and what they say of a sentence is the same but for rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from tasks.errors import ParameterError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.evaluation import protocol
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.vocabulary import END_ID, START_ID, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.causal_lm.next_words import WholeWords

Words = tuple[str, ...]
"""A sentence after normalisation; empty where it has no word."""
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class Drawing:
    """Sentences that a model is to write, by itself or behind prompts, which are no part of them."""

    sentences: int
    """Behind each prompt."""
    likeliest: int
    """Each word, or piece of one, is one of so many likeliest."""
    longest: int
    """Words, or pieces, behind which a sentence is cut off."""
    seed: int
    prompts: "Sequence[Words]" = ((),)
    nucleus: float = 1.0
    """And of these one of the likeliest that together have this probability (Holtzman et al. 2020)."""


@dataclass(frozen=True)
class TargetScores:
    """What a model says of the targets of a ``ReferenceText``, in its order: a sentence's words, then its end."""

    log_probability: np.ndarray
    """Of each target (N,), in nats (float64)."""
    known: np.ndarray
    """Whether the target is in the vocabulary (N,), bool; all are where a model can spell every word."""
    marker_log_probability: np.ndarray | None
    """Of all markers together in place of each target (N,), in nats (float64); ``None``: the model knows none."""

    def without_markers(self) -> np.ndarray:
        """Log-probabilities (N,) with the markers' share of the probability given to all other tokens."""
        if self.marker_log_probability is None:
            return self.log_probability
        return self.log_probability - np.log1p(-np.exp(self.marker_log_probability))


class NextWords(Protocol):
    """The next word's distribution behind many histories, which are numbers; 0 is the beginning of a sentence.

    Equal histories have equal numbers.
    """

    vocabulary: Vocabulary

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories. ``columns`` (C,): ids of the vocabulary in the order that answers stand in."""

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one word more (N,), by its id; nothing is computed yet."""

    def read(self, histories: np.ndarray) -> None:
        """Compute what ``scores`` will need of all these histories (N,) at once; it does so itself where this did not,
        for as many as it is asked for."""

    def scores(self, histories: np.ndarray) -> "Tensor":
        """Of every token as the next one (N, C) float32 on the processor: log-probabilities in nats, but for a constant
        of each row. Columns are as ``start`` was told; the answer is the caller's to write on."""


class LanguageModel(Protocol):
    """A language model of any kind."""

    @property
    def vocabulary_hash(self) -> str:
        """Of the vocabulary or tokeniser."""

    def score_text(
        self, text: str | Path | Sequence[str], markers: protocol.MarkerRule = "in_vocabulary"
    ) -> tuple[TargetScores, protocol.Protocol]:
        """Score a plain text file, or its lines; ``markers`` is the evaluation's rule.

        Raises ``CorpusError`` where the text has no word.
        """

    def score_sentences(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """Log-probability of each sentence by itself with its end (S,), in nats (float64), of groups of distinct ones.

        Prefixes that a group shares are computed once.
        """

    def unknown_words(self, words: Words) -> int:
        """How many of the words the model knows only as unknown."""

    def next_words(self) -> "NextWords | WholeWords":
        """For a search, word after word; a model with pieces of its own is asked for words that are complete.

        The model is the search's from then on. Raises ``ModelError`` where it cannot be asked so.
        """

    def sample(self, drawing: Drawing) -> list[Words]:
        """So many sentences behind each prompt, as the model goes on by itself.

        The model is asked nothing else from then on.
        """


def open_language_model(model: str | Path, precision: Precision = "auto") -> LanguageModel:
    """The model of a folder of any kind, or a causal model of Hugging Face's, by folder, package or name on the hub.

    Raises ``ModelError`` where the model cannot be found or read, and ``ParameterError`` where its kind computes in
    float32 alone and bfloat16 is asked for.
    """
    kind = kind_of_model(model)
    if kind == "causal_lm":
        from tasks.language_model.causal_lm.scoring import CausalScorer

        return CausalScorer.load(model, precision)
    if precision == "bfloat16":
        raise ParameterError(
            f"precision 'bfloat16' is for kind 'causal_lm', and {str(model)!r} is of kind {kind!r}; leave it out"
        )
    if kind == "ngram":
        from tasks.language_model.ngram.scoring import NgramScorer

        return NgramScorer.load(model)
    from tasks.language_model.transformer.scoring import TransformerScorer

    return TransformerScorer.load(model)


def encode_sentences(sentences: Sequence[Words], vocabulary: Vocabulary) -> EncodedText:
    """Sentences as a text of one line each."""
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
