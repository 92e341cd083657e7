"""What a language model has to forget, and by what it is kept from forgetting the rest."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.corpora.sidecar import MaskedSpan
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.evaluation.reference_text import is_touched, placed_words
from tasks.language_model.language_models import encode_sentences
from tasks.language_model.transformer.batching import Batch, divide, make_batch, shuffled_batches, target_places
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import Vocabulary


@dataclass(frozen=True)
class MarkedText:
    """Sentences as ids, of which some words are private."""

    text: EncodedText
    is_private: np.ndarray
    """Of each id of the text (T,), bool."""

    @classmethod
    def of(
        cls, lines: Iterable[str], vocabulary: Vocabulary, spans: Iterable[Sequence[MaskedSpan]] | None = None
    ) -> "MarkedText":
        """Lines, and what is private in each; without ``spans`` nothing is. Lines without a word are left out."""
        sentences, private = [], []
        for line, found in zip(lines, spans, strict=True) if spans is not None else ((line, ()) for line in lines):
            words = placed_words(line)
            if words:
                sentences.append(tuple(word.word for word in words))
                private += [False, *(is_touched(word.start, word.end, found) for word in words), False]
        return cls(encode_sentences(sentences, vocabulary), np.array(private, dtype=bool))

    @property
    def sentences(self) -> int:
        """Lines that have a word."""
        return self.text.sentences


@dataclass(frozen=True)
class Request:
    """A model, what it has to forget, and what not."""

    start: TransformerLanguageModel
    """The model that was trained on both; it stays as it is."""
    base: TransformerLanguageModel
    """The model that it was adapted from, which has seen neither."""
    vocabulary: Vocabulary
    forget: MarkedText
    retain: MarkedText
    """Text that it was trained on too, and may know."""
    refilled: MarkedText | None
    """What is to be forgotten, with other words in the places of the private ones, in one copy or several."""
    seed: int


@dataclass(frozen=True)
class PlacedBatch:
    """Windows side by side, and where their targets stand in the text."""

    batch: Batch
    places: np.ndarray
    """Index of each target (N,) into the text's ids."""


def batches(marked: MarkedText, maximum_tokens: int, batch_tokens: int, seed: int) -> Iterator[PlacedBatch]:
    """Batches of about so many targets without end, each epoch in an order of its own."""
    text = marked.text
    windows, is_target, epoch = divide(text, maximum_tokens), text.is_target(), 0
    while True:
        for chosen in shuffled_batches(windows, batch_tokens, seed, epoch):
            batch = make_batch(text, is_target, windows, chosen)
            yield PlacedBatch(batch, target_places(batch, windows.first[chosen]))
        epoch += 1
