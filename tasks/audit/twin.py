"""A twin of a cell's language model: trained as that one is, on its text without some lines and with canaries.

The released model must be as good as it can be, so nothing is planted into its text. The twin has the same text, but
for lines that were left out by coin, whose neighbours from the same documents stay (so that nothing but membership
tells them from those), and with canaries that were masked and filled as the text was. What it gives away, a model that
is trained in the same way gives away of sentences of the same sort.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.audit.canaries import FAMILIES, Canaries, Family
from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import CorpusError

_SEED_BRANCH, _SHADOW_BRANCH = 0x617564, 0x736861
"""Keep the coins of lines apart from other draws of the same seed."""


@dataclass(frozen=True)
class Obfuscated:
    """Canaries as the cell's text would have them."""

    lines: list[str]
    """One for each line that was given."""
    spans: Sequence[Sequence[MaskedSpan]]
    """What was masked in each; nothing where the text is raw."""


Obfuscate = Callable[[Sequence[str]], Obfuscated]
"""Masks and fills lines as the cell's text was; the same line twice may be filled differently."""


@dataclass(frozen=True)
class TwinText:
    """What a twin is trained on, and what is asked of it."""

    text: Sequence[str]
    """The cell's own: a line for each private one, in one copy or several, one behind the other."""
    documents: Sequence[str]
    """Of each private line (L,)."""
    is_member: np.ndarray
    """Of each private line (L,), whether the twin is trained on it, bool."""
    planted: Sequence[tuple[str, str]]
    """Canaries as they stand there, each with its document, one of its own, however often it stands there."""
    masked_shares: Mapping[Family, float | None]
    """Share of the drawn words of each family that was masked; ``None`` where none was planted."""
    seed: int

    def of(self, is_member: np.ndarray) -> list[tuple[str, str]]:
        """Lines to train on, each with its document: those of these members (L,) in their order, canaries among them,
        each at a place of its own."""
        number = len(self.documents)
        kept = [
            (line, f"document {self.documents[place % number]}")
            for place, line in enumerate(self.text)
            if is_member[place % number]
        ]
        order = random.Random(f"{self.seed} places")
        placed = [*enumerate(kept), *((order.random() * len(kept), pair) for pair in self.planted)]
        return [pair for _, pair in sorted(placed, key=lambda each: each[0])]

    def shadows(self, models: int, held_out_share: float) -> np.ndarray:
        """Members (S, L) of so many other draws, bool; each line is left out by as many of them, two at least."""
        out = min(models - 2, max(2, round(models * held_out_share)))
        drawn = np.random.default_rng([self.seed, _SHADOW_BRANCH]).random((models, len(self.documents)))
        return drawn.argsort(axis=0).argsort(axis=0) >= out


def twin_text(
    members: Sequence[str],
    documents: Sequence[str],
    text: Sequence[str],
    canaries: Canaries,
    obfuscate: Obfuscate,
    held_out_share: float,
    seed: int,
) -> TwinText:
    """Leave lines out and plant canaries.

    ``members`` and ``documents``: the private lines (L), and what each belongs to; ``text``: the cell's own, once or in
    several copies one behind the other. ``CorpusError`` where it has another number of lines.
    """
    if not members or len(text) % len(members):
        raise CorpusError(
            f"the text has {len(text):,} lines, and the private one {len(members):,}: one is not made from the other "
            "line by line; give the private text that it was made from as --members"
        )
    generator = np.random.default_rng([seed, _SEED_BRANCH])
    is_member = generator.random(len(members)) >= held_out_share
    planted = [canary for canary in canaries.planted for _ in range(canary.repetitions)]
    obfuscated = obfuscate([canary.text for canary in planted])
    named = [(line, f"canary {canary.text}") for line, canary in zip(obfuscated.lines, planted, strict=True)]
    masked = {family: [0, 0] for family in FAMILIES}
    for canary, spans in zip(planted, obfuscated.spans, strict=True):
        hidden = {span.start for span in spans}
        masked[canary.family][0] += sum(place in hidden for place in canary.drawn)
        masked[canary.family][1] += len(canary.drawn)
    shares = {family: hit / drawn if drawn else None for family, (hit, drawn) in masked.items()}
    return TwinText(text, documents, is_member, named, shares, seed)
