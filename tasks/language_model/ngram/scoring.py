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
        self.vocabulary, self._mixture, self._languages = vocabulary, mixture, mixture.languages

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories."""
        self._columns = columns
        self._histories = SequenceTree(len(self.vocabulary))
        # By history, q of the next language (K,).
        self._expected = [] if self._languages is None else [self._languages.first]

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one more word (N,)."""
        found, before = self._histories.children(histories, words)
        if self._languages is not None:
            for history in range(before, self._histories.size):
                expected = self._expected[int(self._histories.parent[history])]
                word = self._histories.unit[history : history + 1]
                self._expected.append(self._languages.step(expected[None], word)[0])
        return found

    def read(self, histories: np.ndarray) -> None:
        """Do nothing: histories share no computation."""
        return

    def scores(self, histories: np.ndarray) -> "Tensor":
        """The log-probability of every token as the next one (N, C)."""
        import torch

        found = torch.empty(len(histories), len(self._columns))
        for row, history in enumerate(histories.tolist()):
            words = START_ID, *self._histories.sequence(history)
            mixed = np.zeros(len(self.vocabulary))
            for model, weight in zip(self._mixture.models, self._mixture.weights, strict=True):
                if weight > 0:
                    mixed += weight * np.exp(_distribution(model, words))
            if self._languages is not None:
                mixed *= self._languages.factor_of_words(self._expected[history], mixed)
            with np.errstate(divide="ignore"):
                found[row] = torch.from_numpy(np.log(mixed)).float()[torch.from_numpy(self._columns)]
        return found


def _distribution(model: BackoffModel, words: Sequence[int]) -> np.ndarray:
    """Log-probabilities (V,) of every word after these words of a sentence, of which ``<s>`` is the first."""
    result = model.orders[0].log_probability.copy()
    for length, (lower, higher) in enumerate(pairwise(model.orders[: len(words) + 1]), start=1):
        entry = _entry(model, words[-length:])
        if entry < 0 or not len(higher.keys):
            continue
        result += lower.log_backoff[entry]
        begin, end = np.searchsorted(higher.keys, [entry * model.vocabulary_size, (entry + 1) * model.vocabulary_size])
        result[higher.keys[begin:end] - entry * model.vocabulary_size] = higher.log_probability[begin:end]
    return result


def _entry(model: BackoffModel, words: Sequence[int]) -> int:
    """The index of an n-gram in the table of its order; -1 where it is missing."""
    entry = words[0]
    for table, word in zip(model.orders[1:], words[1:], strict=False):
        if entry < 0 or not len(table.keys):
            return -1
        entry = int(find(table.keys, np.array([entry * model.vocabulary_size + word]))[0])
    return entry
