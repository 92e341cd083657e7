"""Where words stand, and which languages they are of: rotary positions (Su et al. 2021), also such as know where a line
changes its language, and the language that is expected next as an input of the word model (state fusion).

Queries and keys are turned by an angle in proportion to their word's place, so that what two words are to each other
goes by the difference of their places. Two kinds follow the idea of CONFLATOR (Ali et al. 2023), rotary positions that
mark switch points, word by word and pair by pair: with ``switching`` the turn changes its direction at each switch
point, so that only words of one stretch are as far apart as they stand; with ``switching_pairs`` a word stands as far
behind the one before it as was learned for their pair of languages, 1 to begin with. That paper's models read whole
sentences with given languages; here a word's language is told by itself and the words to its left.

The languages of a row are followed from word to word as ``LanguageFactors.expected`` follows them, by ids alone, so
that no later word is known.
"""

import torch
from torch import Tensor, nn

from tasks.language_model.language_factors import TABLES, LanguageFactors
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.vocabulary import START_ID

Turns = tuple[Tensor, Tensor]
"""Cosine and sine of the angle of each place and pair of units, (B or 1, 1, T, D/H/2) each."""
_BASE = 10_000.0
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


def turned(states: Tensor, turns: Turns) -> Tensor:
    """Queries or keys (B, H, T, D/H) with unit n and n + D/H/2 turned as a pair."""
    cosine, sine = (part.to(states.dtype) for part in turns)
    left, right = states.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


class RotaryPositions(LanguageTables):
    """Ids of words to the turns of their places."""

    frequencies: Tensor

    def __init__(self, architecture: ArchitectureSettings, vocabulary_size: int) -> None:
        self._kind = architecture.positions
        languages = len(architecture.languages) if self._kind.startswith("switching") else 0
        super().__init__(languages, vocabulary_size)
        half = architecture.width // architecture.heads // 2
        self.register_buffer("frequencies", _BASE ** -(torch.arange(half) / half), persistent=False)
        if self._kind == "switching_pairs":
            self.pairs = nn.Parameter(torch.ones(languages * languages))

    def forward(self, tokens: Tensor) -> Turns:
        """The turns of ids (B, T); those of a place depend on no later id."""
        angles = self.places(tokens)[:, None, :, None] * self.frequencies
        return angles.cos(), angles.sin()

    def places(self, tokens: Tensor) -> Tensor:
        """Where each word stands (B or 1, T)."""
        places = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)[None]
        if self._kind == "rotary" or tokens.shape[1] < 2:
            return places
        languages = self.follow(tokens)[0].argmax(dim=2)
        before, here = languages[:, 1:-1], languages[:, 2:]  # <s>, the first of all, has no language
        if self._kind == "switching":
            directions = torch.where(before == here, 1.0, -1.0).cumprod(dim=1)
            return places * nn.functional.pad(directions, (2, 0), value=1.0)
        apart = self.pairs[before * self.first.shape[0] + here]
        return nn.functional.pad(nn.functional.pad(apart, (1, 0), value=1.0), (1, 0)).cumsum(dim=1)


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
