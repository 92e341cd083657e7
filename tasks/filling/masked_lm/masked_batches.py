"""Batches for training and testing a masked LM on the task that filling sets: one mask token for one whole word.

Only words that are a single piece are masked, always by the mask token itself: a marker never stands for part of a
word, and what the filler never writes (``candidate_words``) is not practised either. Sentences stand alone, as they do
when they are filled, those of about equal length together; those of equal length alone where the model mixes padding
into them (``padding_probe``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.filling.masked_lm.candidate_words import CandidateWords, continues_word, holds_word, without_sign

if TYPE_CHECKING:
    import torch

_POOL_SENTENCES = 8192
"""So many sentences at a time are sorted by length; whole batches are then put in random order."""


@dataclass(frozen=True)
class MaskedBatch:
    """``B`` sentences of up to ``T`` pieces, ``N`` of them masked."""

    pieces: "torch.Tensor"
    """``(B, T)``, mask tokens in place."""
    attention: "torch.Tensor"
    """``(B, T)``, 1 where there is a piece and 0 where there is padding."""
    rows: "torch.Tensor"
    """``(N,)`` sentence of each masked place."""
    positions: "torch.Tensor"
    """``(N,)`` its position."""
    targets: "torch.Tensor"
    """``(N,)`` the piece that stood there."""


class WordMasker:
    """Makes batches of one tokenizer's pieces."""

    def __init__(self, tokenizer: Any, candidates: CandidateWords, vocabulary_size: int) -> None:
        self._tokenizer = tokenizer
        self._maskable = np.zeros(vocabulary_size, dtype=bool)  # (V,)
        self._maskable[candidates.spaced] = True
        self._maskable[candidates.glued] = True
        self._continues = np.zeros(vocabulary_size, dtype=bool)  # (V,)
        self._continues[continues_word(tokenizer)] = True
        self._without_sign = np.zeros(vocabulary_size, dtype=bool)  # (V,)
        self._without_sign[without_sign(tokenizer)] = True
        if self._without_sign.any() and tokenizer.unk_token_id is not None:
            # It stands for a character in such a vocabulary, and that may be a letter.
            self._continues[tokenizer.unk_token_id] = True
        self._holds_word = np.zeros(vocabulary_size, dtype=bool)  # (V,)
        self._holds_word[holds_word(tokenizer)] = True

    def encode(self, lines: Sequence[str], longest_sentence: int) -> list[list[int]]:
        """Pieces of each line with special ones at its ends, cut to ``longest_sentence``; only lines with a word to
        mask."""
        encoded = self._tokenizer(
            list(lines),
            truncation=True,
            max_length=longest_sentence,
            return_attention_mask=False,
            split_special_tokens=True,
        )["input_ids"]
        return [pieces for pieces in encoded if self.maskable(np.array([pieces])).any()]

    def maskable(self, pieces: np.ndarray) -> np.ndarray:
        """``(B, T)`` booleans: which of ``(B, T)`` pieces are a whole word by themselves."""
        following = np.zeros_like(pieces)
        following[:, :-1] = pieces[:, 1:]
        inside = np.zeros(pieces.shape, dtype=bool)
        inside[:, 1:] = self._without_sign[pieces[:, 1:]] & self._holds_word[pieces[:, :-1]]
        return self._maskable[pieces] & ~inside & ~self._continues[following]

    def batch(self, sentences: Sequence[Sequence[int]], share: float, random: np.random.Generator) -> MaskedBatch:
        """Mask about ``share`` of all pieces, and at least one word of every sentence."""
        import torch

        longest = max(map(len, sentences))
        padding = self._tokenizer.pad_token_id
        pieces = np.full((len(sentences), longest), padding if padding is not None else 0)
        attention = np.zeros_like(pieces)
        for row, sentence in enumerate(sentences):
            pieces[row, : len(sentence)] = sentence
            attention[row, : len(sentence)] = 1
        maskable = self.maskable(pieces) & (attention == 1)
        # Of each sentence's maskable words the ones with the smallest tickets, so every sentence has at least one.
        tickets = np.where(maskable, random.random(pieces.shape), np.inf)
        wanted = np.clip(np.round(share * attention.sum(axis=1)), 1, maskable.sum(axis=1)).astype(int)  # (B,)
        ranks = tickets.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        rows, positions = np.nonzero(maskable & (ranks < wanted[:, None]))
        targets = pieces[rows, positions]
        pieces[rows, positions] = self._tokenizer.mask_token_id
        return MaskedBatch(*map(torch.from_numpy, (pieces, attention, rows, positions, targets)))


def length_batches(
    sentences: Sequence[Sequence[int]], batch_pieces: int, random: np.random.Generator, *, equal_lengths: bool = False
) -> Iterator[list[Sequence[int]]]:
    """Endless batches of at most ``batch_pieces`` pieces with padding (or one sentence), every sentence once per
    epoch; with ``equal_lengths`` no batch has any padding."""
    while True:
        order = random.permutation(len(sentences))
        for start in range(0, len(order), _POOL_SENTENCES):
            pool = sorted((sentences[i] for i in order[start : start + _POOL_SENTENCES]), key=len)
            batches: list[list[Sequence[int]]] = [[]]
            for sentence in pool:
                batch = batches[-1]
                full = (len(batch) + 1) * len(sentence) > batch_pieces
                if batch and (full or (equal_lengths and len(sentence) > len(batch[0]))):
                    batches.append([])
                batches[-1].append(sentence)
            for index in random.permutation(len(batches)):
                yield batches[index]
