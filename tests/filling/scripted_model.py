"""A masked LM that follows a script: its scores are written down, so what an order of filling does is known by hand."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import torch

from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_lm.masked_language_model import Asked, MaskedLanguageModel

MASK = "_"
Script = Callable[[Sequence[str], int], Mapping[str, float]]
"""From the words of a sentence, ``_`` where a slot is open, and a position to the probability of each word there."""


class ScriptedModel(MaskedLanguageModel):
    """Every word is one piece; ``asked`` has each slot that was scored, as words and position."""

    def __init__(self, words: Sequence[str], script: Script, *, room: int = 1000) -> None:
        self.words = [MASK, *words]
        self.name, self.mask_entry, self.vocabulary_size = "script", 0, len(self.words)
        self.prefix, self.suffix, self.room = [], [], room
        self.model = SimpleNamespace(device=torch.device("cpu"))
        self.halving, self.seconds = BatchHalving(self.name), 0.0
        self.script = script
        self.asked: list[tuple[list[str], int]] = []

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        return [[self.words.index(word) for word in MASK.join(texts).split()] for texts in sentences]

    def logits(self, asked: Sequence[Asked]) -> torch.Tensor:
        rows = []
        for each in asked:
            words = [self.words[piece] for piece in each.pieces]
            self.asked.append((words, each.position))
            assert words[each.position] == MASK
            probabilities = self.script(words, each.position)
            rows.append([float(np.log(probabilities.get(word, 1e-6))) for word in self.words])
        return torch.tensor(rows)

    def candidates(self) -> CandidateWords:
        entries = np.arange(1, len(self.words))
        return CandidateWords(tuple(self.words[1:]), entries, entries, line_start_is_spaced=True, cased=True)
