"""Hypotheses scored by an n-gram model: all of them at once, since it looks each word up."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tasks.language_model.ngram.folder import load
from tasks.speech.rescoring.language_model_scorer import LanguageModelScorer, Words, encode_sentences, sentence_sums

_SENTENCES_AT_ONCE = 100_000


class NgramScorer(LanguageModelScorer):
    """The model of a folder that 'palimpsest pretrain' or 'adapt' made."""

    def __init__(self, folder: str | Path) -> None:
        self._mixture, self._words = load(folder)
        self.vocabulary = self._words.hash

    def log_probabilities(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """As the base class says."""
        flat = [words for group in groups for words in group]
        sums = []
        for begin in range(0, len(flat), _SENTENCES_AT_ONCE):
            text = encode_sentences(flat[begin : begin + _SENTENCES_AT_ONCE], self._words)
            sums.append(sentence_sums(self._mixture.log_probabilities(text)[text.is_target()], text))
        joined = np.concatenate(sums) if sums else np.zeros(0)
        return np.split(joined, np.cumsum([len(group) for group in groups])[:-1])

    def unknown_words(self, words: Words) -> int:
        """As the base class says."""
        return sum(word not in self._words.ids for word in words)
