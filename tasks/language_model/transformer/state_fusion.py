"""Which language comes next, as an input of the word model (state fusion); what it and switching positions go by.

The languages of a row are followed from word to word as ``LanguageFactors.expected`` follows them, by ids alone, so
that no later word is known.
"""

import torch
from torch import Tensor, nn

from tasks.language_model.language_factors import TABLES, LanguageFactors
from tasks.language_model.vocabulary import START_ID

_TINY = 1e-30
_SMALLEST = 1e-4


class LanguageTables(nn.Module):
    """What is known of the languages (K) of words (V); nothing to begin with, and no training changes it."""

    shares: Tensor
    steps: Tensor
    first: Tensor

    def __init__(self, languages: int, vocabulary_size: int) -> None:
        super().__init__()
        if languages:
            self.register_buffer("shares", torch.zeros(vocabulary_size, languages))
            self.register_buffer("steps", torch.zeros(vocabulary_size, languages, languages))
            self.register_buffer("first", torch.full((languages,), 1 / languages))

    def know(self, factors: LanguageFactors) -> None:
        """Take over what is known of the languages of words."""
        for name, table in self.named_buffers():
            if name in TABLES:
                table.copy_(torch.from_numpy(getattr(factors, name)))

    @torch.no_grad()
    def follow(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The languages of each id of (B, T) by itself and those to its left, and those expected behind it, both
        (B, T, K). A row may hold several sentences."""
        expected = self.first.expand(len(tokens), -1)
        told, behind = [], []
        for column in tokens.T:
            shares = self.shares[column]
            here = expected * torch.where(shares.any(dim=1, keepdim=True), shares, 1.0) + _TINY
            here = here / here.sum(dim=1, keepdim=True)
            # No matrix product: these lose digits where training computes in bfloat16.
            expected = (here[:, :, None] * self.steps[column]).sum(dim=1)
            expected = torch.where((column == START_ID)[:, None], self.first, expected)
            told.append(here)
            behind.append(expected)
        return torch.stack(told, dim=1), torch.stack(behind, dim=1)


class StateFusion(LanguageTables):
    """What is added to the last hidden states: W log q, of what is expected of the next word's language, q.

    The score of a word is the product of a hidden state and the word's vector, so that each word's probability is
    multiplied by powers of q that are learned with all other weights: a log-linear model of words and languages. W
    begins as 0, the model without languages.
    """

    def __init__(self, languages: int, vocabulary_size: int, width: int) -> None:
        super().__init__(languages, vocabulary_size)
        self.weight = nn.Parameter(torch.zeros(languages, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T, D) of ids (B, T); what is said of a place depends on no later id."""
        state = self.follow(tokens)[1].clamp(min=_SMALLEST).log()
        return (state[..., None] * self.weight).sum(dim=2)
