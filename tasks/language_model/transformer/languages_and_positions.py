"""Rotary positions (Su et al. 2021), with or without switch points of languages, and state fusion.

Rotary positions turn queries and keys by an angle in proportion to the word's position. So the attention between two
words depends on the difference of their positions. Two kinds follow CONFLATOR (Ali et al. 2023), whose rotary positions
mark switch points by word and by pair. With ``switching`` the turn reverses at each switch point, so only words of one
stretch have their usual distance. With ``switching_pairs`` the distance between a word and the one before it is learned
for their pair of languages; it starts at 1. CONFLATOR's models read whole sentences with given languages. Here a word's
language is inferred from the word and the words to its left.

State fusion makes the expected next language an input of the word model. Languages are followed from word to word as in
``LanguageFactors.expected``, from ids alone, so no later word is used.
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
    """Statistics of the languages (K) of words (V). They are empty at first, and no training changes them."""

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
        """Copy the statistics of the languages of words."""
        for name, table in self.named_buffers():
            if name in TABLES:
                table.copy_(torch.from_numpy(getattr(factors, name)))

    @torch.no_grad()
    def follow(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The languages of each id of (B, T), from itself and the ids to its left, and the languages expected
        next, both (B, T, K). A row may hold several sentences."""
        expected = self.first.expand(len(tokens), -1)
        current, following = [], []
        for column in tokens.T:
            shares = self.shares[column]
            here = expected * torch.where(shares.any(dim=1, keepdim=True), shares, 1.0) + _TINY
            here = here / here.sum(dim=1, keepdim=True)
            # No matrix product: it loses digits where training computes in bfloat16.
            expected = (here[:, :, None] * self.steps[column]).sum(dim=1)
            expected = torch.where((column == START_ID)[:, None], self.first, expected)
            current.append(here)
            following.append(expected)
        return torch.stack(current, dim=1), torch.stack(following, dim=1)


def turned(states: Tensor, turns: Turns) -> Tensor:
    """Turn queries or keys (B, H, T, D/H), with units n and n + D/H/2 as a pair."""
    cosine, sine = (part.to(states.dtype) for part in turns)
    left, right = states.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


class RotaryPositions(LanguageTables):
    """Maps ids of words to the turns of their positions."""

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
        """The turns of ids (B, T); a turn depends on no later id."""
        angles = self.places(tokens)[:, None, :, None] * self.frequencies
        return angles.cos(), angles.sin()

    def places(self, tokens: Tensor) -> Tensor:
        """The position of each word (B or 1, T), as a float."""
        places = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)[None]
        if self._kind == "rotary" or tokens.shape[1] < 2:
            return places
        languages = self.follow(tokens)[0].argmax(dim=2)
        before, here = languages[:, 1:-1], languages[:, 2:]  # <s>, the first of all, has no language
        if self._kind == "switching":
            directions = torch.where(before == here, 1.0, -1.0).cumprod(dim=1)
            return places * nn.functional.pad(directions, (2, 0), value=1.0)
        distances = self.pairs[before * self.first.shape[0] + here]
        return nn.functional.pad(nn.functional.pad(distances, (1, 0), value=1.0), (1, 0)).cumsum(dim=1)


class StateFusion(LanguageTables):
    """Adds W log q to the last hidden states, where q is the expected language of the next word.

    A word's score is the product of a hidden state and the word's vector. So each word's probability is multiplied by
    learned powers of q: a log-linear model of words and languages. W starts at 0, which is the model without languages.
    """

    def __init__(self, languages: int, vocabulary_size: int, width: int) -> None:
        super().__init__(languages, vocabulary_size)
        self.weight = nn.Parameter(torch.zeros(languages, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """The addition (B, T, D) for ids (B, T); it depends on no later id."""
        state = self.follow(tokens)[1].clamp(min=_SMALLEST).log()
        return (state[..., None] * self.weight).sum(dim=2)
