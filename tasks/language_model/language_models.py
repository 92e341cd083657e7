"""Interfaces of all kinds of language models; ``tasks.language_model.opening`` opens a model.

A perplexity scores a text, rescoring scores sentences, and the beam search reads next-word scores. All three use the
same model, and their scores of a sentence agree up to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from tasks.language_model.encoded_text import EncodedText, encode_text, overlap_of
from tasks.language_model.evaluation import protocol
from tasks.language_model.sampling import sample_words
from tasks.language_model.vocabulary import END_ID, START_ID, UNKNOWN_ID, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor


Words = tuple[str, ...]
"""A sentence after normalisation; empty where it has no word."""
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class Drawing:
    """Sentences to sample from a model, after prompts that are no part of them."""

    sentences: int
    """Number of sentences after each prompt."""
    likeliest: int
    """Each word or subword token is drawn from this many likeliest (top-k)."""
    longest: int
    """Maximum length of a sentence, in words or subword tokens."""
    seed: int
    prompts: "Sequence[Words]" = ((),)
    nucleus: float = 1.0
    """Each is also drawn from the likeliest that together have this probability (Holtzman et al. 2020)."""


@dataclass(frozen=True)
class TargetScores:
    """Scores of the targets of a ``ReferenceText``, in its order: a sentence's words, then its end."""

    log_probability: np.ndarray
    """Log-probability of each target (N,), in nats (float64)."""
    known: np.ndarray
    """Whether the target is in the vocabulary (N,), bool; always, for a model that can spell every word."""
    marker_log_probability: np.ndarray | None
    """Log-probability of all markers together at each target (N,), in nats (float64); ``None``: no markers."""

    def without_markers(self) -> np.ndarray:
        """Log-probabilities (N,) with the markers' probability redistributed to all other tokens."""
        if self.marker_log_probability is None:
            return self.log_probability
        return self.log_probability - np.log1p(-np.exp(self.marker_log_probability))


class NextWords(Protocol):
    """Next-word distributions of many histories at once. Histories are numbers; 0 is the start of a sentence.

    Equal histories have equal numbers.
    """

    vocabulary: Vocabulary

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories. ``columns`` (C,): ids of the vocabulary in the column order of ``scores``."""

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories (N,) extended by one word each, by its id; nothing is computed yet."""

    def read(self, histories: np.ndarray) -> None:
        """Compute in one batch all that ``scores`` needs of these histories (N,). Otherwise ``scores`` computes it for
        the histories it is given."""

    def scores(self, histories: np.ndarray) -> "Tensor":
        """The scores of every token as the next one (N, C), float32 on the processor: log-probabilities in nats,
        up to a constant of each row. ``start`` sets the columns; the caller may overwrite the result."""


class LanguageModel:
    """A language model of any kind."""

    vocabulary: Vocabulary
    """Its words; one that can spell every word takes up those that it meets."""
    vocabulary_hash: str
    """Hash of the vocabulary or tokeniser."""
    vocabulary_size: int
    longest: int | None
    """Size of its window, in words or subword tokens; ``None``: no limit."""

    def score_text(
        self, text: str | Path | Sequence[str], markers: protocol.MarkerRule = "in_vocabulary"
    ) -> tuple[TargetScores, protocol.Protocol]:
        """Score a plain text file, or its lines; ``markers`` is the evaluation's rule.

        Raises ``CorpusError`` where the text has no word.
        """
        encoded = encode_text(text, self.vocabulary)
        return self.score_targets(encoded), protocol.Protocol(
            vocabulary=self.vocabulary_hash,
            vocabulary_size=self.vocabulary_size,
            unknown_rate=None if self.vocabulary.is_open else encoded.unknown_words / encoded.words,
            words=encoded.words,
            maximum_tokens=self.longest,
            stride=None if self.longest is None else self.longest - overlap_of(self.longest),
            markers=markers,
        )

    def score_targets(self, text: EncodedText) -> TargetScores:
        """Score the targets of a text over the model's vocabulary."""
        own, of_markers = self.scores_of_ids(text)
        is_target = text.is_target()
        return TargetScores(
            log_probability=own[is_target],
            known=text.tokens[is_target] != UNKNOWN_ID,
            marker_log_probability=None if of_markers is None else of_markers[is_target],
        )

    def scores_of_ids(self, text: EncodedText) -> tuple[np.ndarray, np.ndarray | None]:
        """Log-probability of each id of a text (N,), and of all markers together at its place (N,), in nats.

        The first is 0 at an id that is no target; the second is ``None`` for a model without markers.
        """
        raise NotImplementedError

    def score_sentences(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """Each sentence's log-probability with its end (S,), in nats (float64), for groups of distinct ones.

        Prefixes that the sentences of a group share are computed once.
        """
        raise NotImplementedError

    def unknown_words(self, words: Words) -> int:
        """Number of the words that the model reads as ``<unk>``."""
        return self.vocabulary.encode(words).count(UNKNOWN_ID)

    def next_words(self) -> "NextWords":
        """Next-word scores for a search, which owns the model from then on.

        Raises ``ModelError`` where the model has subword tokens.
        """
        raise NotImplementedError

    def sample(self, drawing: Drawing) -> list[Words]:
        """Sample sentences after each prompt.

        The model cannot be used otherwise afterwards.
        """
        return sample_words(self.next_words(), drawing)


def encode_sentences(sentences: Sequence[Words], vocabulary: Vocabulary) -> EncodedText:
    """Encode sentences as a text of one line each."""
    lengths = np.fromiter((len(words) + 2 for words in sentences), dtype=np.int64, count=len(sentences))
    tokens = [token for words in sentences for token in (START_ID, *vocabulary.encode(words), END_ID)]
    return EncodedText(
        tokens=np.array(tokens, dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        lines=np.arange(1, len(sentences) + 1),
    )


def sentence_sums(values: np.ndarray, text: EncodedText) -> np.ndarray:
    """Sum the values of all targets (N,) over each sentence (S,)."""
    targets = np.diff(text.offsets) - 1
    return np.bincount(np.repeat(np.arange(len(targets)), targets), weights=values, minlength=len(targets))
