"""Rotary positions (Su et al. 2021), also such as know where a line changes its language.

Queries and keys are turned by an angle in proportion to their word's place, so that what two words are to each other
goes by the difference of their places. Two kinds follow the idea of CONFLATOR (Ali et al. 2023), rotary positions that
mark switch points, word by word and pair by pair: with ``switching`` the turn changes its direction at each switch
point, so that only words of one stretch are as far apart as they stand; with ``switching_pairs`` a word stands as far
behind the one before it as was learned for their pair of languages, 1 to begin with. That paper's models read whole
sentences with given languages; here a word's language is told by itself and the words to its left.
"""

import torch
from torch import Tensor, nn

from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.state_fusion import LanguageTables

Turns = tuple[Tensor, Tensor]
"""Cosine and sine of the angle of each place and pair of units, (B or 1, 1, T, D/H/2) each."""
_BASE = 10_000.0


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
