"""``NgramScorer``: score texts, sentences and next words with an n-gram model."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.language_models import LanguageModel, NextWords, Words, encode_sentences, sentence_sums
from tasks.language_model.ngram.backoff_model import BackoffModel, NgramMixture, find
from tasks.language_model.sequence_tree import SequenceTree
from tasks.language_model.vocabulary import START_ID, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

_SENTENCES_AT_ONCE = 100_000


class NgramScorer(LanguageModel):
    """An n-gram model that scores texts and sentences."""

    longest = None

    def __init__(self, mixture: NgramMixture, vocabulary: Vocabulary) -> None:
        self._mixture, self.vocabulary = mixture, vocabulary
        self.vocabulary_hash, self.vocabulary_size = vocabulary.hash, len(vocabulary)

    def scores_of_ids(self, text: EncodedText) -> tuple[np.ndarray, np.ndarray | None]:
        """See ``LanguageModel``."""
        return self._mixture.log_probabilities(text), self._mixture.marker_log_probabilities(text)

    def score_sentences(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """See ``LanguageModel``."""
        flat = [words for group in groups for words in group]
        sums = []
        for begin in range(0, len(flat), _SENTENCES_AT_ONCE):
            text = encode_sentences(flat[begin : begin + _SENTENCES_AT_ONCE], self.vocabulary)
            sums.append(sentence_sums(self._mixture.log_probabilities(text)[text.is_target()], text))
        joined = np.concatenate(sums) if sums else np.zeros(0)
        return np.split(joined, np.cumsum([len(group) for group in groups])[:-1])

    def next_words(self) -> NextWords:
        """See ``LanguageModel``."""
        return NgramNextWord(self._mixture, self.vocabulary)


class NgramNextWord:
    """See ``NextWords``; scores are whole distributions."""

    def __init__(self, mixture: NgramMixture, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        used = [(model, weight) for model, weight in zip(mixture.models, mixture.weights, strict=True) if weight > 0]
        self._models, self._weights = [model for model, _ in used], [weight for _, weight in used]
        self._languages = mixture.languages

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories."""
        self._columns = columns
        self._histories = SequenceTree(len(self.vocabulary))
        # By history and model: the entry of each order that the history ends in, or -1.
        self._entries = [[self._first(model) for model in self._models]]
        # By history, q of the next language (K,).
        self._expected = [] if self._languages is None else [self._languages.first]

    @staticmethod
    def _first(model: BackoffModel) -> np.ndarray:
        entries = np.full(max(model.order - 1, 1), -1, dtype=np.int64)
        entries[0] = START_ID
        return entries

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one more word (N,)."""
        found, before = self._histories.children(histories, words)
        for history in range(before, self._histories.size):
            parent, word = int(self._histories.parent[history]), int(self._histories.unit[history])
            self._entries.append(
                [self._next(*pair, word) for pair in zip(self._models, self._entries[parent], strict=True)]
            )
            if self._languages is not None:
                self._expected.append(self._languages.step(self._expected[parent][None], np.array([word]))[0])
        return found

    @staticmethod
    def _next(model: BackoffModel, before: np.ndarray, word: int) -> np.ndarray:
        entries = np.full_like(before, -1)
        entries[0] = word
        for place, table in enumerate(model.orders[1:-1]):
            if before[place] >= 0 and len(table.keys):
                wanted = np.array([before[place] * model.vocabulary_size + word])
                entries[place + 1] = find(table.keys, wanted)[0]
        return entries

    def read(self, histories: np.ndarray) -> None:
        """Do nothing: histories share no computation."""
        return

    def scores(self, histories: np.ndarray) -> "Tensor":
        """The log-probability of every token as the next one (N, C)."""
        import torch

        found = torch.empty(len(histories), len(self._columns))
        for row, history in enumerate(histories.tolist()):
            mixed = np.zeros(len(self.vocabulary))
            for model, weight, entries in zip(self._models, self._weights, self._entries[history], strict=True):
                mixed += weight * np.exp(_distribution(model, entries))
            if self._languages is not None:
                mixed *= self._languages.factor_of_words(self._expected[history], mixed)
            with np.errstate(divide="ignore"):
                found[row] = torch.from_numpy(np.log(mixed)).float()[torch.from_numpy(self._columns)]
        return found


def _distribution(model: BackoffModel, entries: np.ndarray) -> np.ndarray:
    """Log-probabilities (V,) of every word after a history that ends in these entries."""
    result = model.orders[0].log_probability.copy()
    for entry, (lower, higher) in zip(entries.tolist(), pairwise(model.orders), strict=False):
        if entry < 0 or not len(higher.keys):
            continue
        result += lower.log_backoff[entry]
        begin, end = np.searchsorted(higher.keys, [entry * model.vocabulary_size, (entry + 1) * model.vocabulary_size])
        result[higher.keys[begin:end] - entry * model.vocabulary_size] = higher.log_probability[begin:end]
    return result
