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

_SEED_BRANCH = 0x617564
"""Keeps the coins of lines apart from other draws of the same seed."""


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

    lines: list[str]
    """To train on."""
    documents: list[str]
    """The document of each of these; a canary is one of its own, however often it stands there."""
    is_member: np.ndarray
    """Of each private line (L,), whether it is among these, bool."""
    masked_shares: Mapping[Family, float | None]
    """Share of the drawn words of each family that was masked; ``None`` where none was planted."""


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
    kept = [
        (line, f"document {documents[number % len(members)]}")
        for number, line in enumerate(text)
        if is_member[number % len(members)]
    ]
    planted = [canary for canary in canaries.planted for _ in range(canary.repetitions)]
    obfuscated = obfuscate([canary.text for canary in planted])
    order = random.Random(f"{seed} places")
    # Among the others, each at a place of its own.
    named = [(line, f"canary {canary.text}") for line, canary in zip(obfuscated.lines, planted, strict=True)]
    placed = [*enumerate(kept), *((order.random() * len(kept), pair) for pair in named)]
    together = [pair for _, pair in sorted(placed, key=lambda each: each[0])]
    masked = {family: [0, 0] for family in FAMILIES}
    for canary, spans in zip(planted, obfuscated.spans, strict=True):
        hidden = {span.start for span in spans}
        masked[canary.family][0] += sum(place in hidden for place in canary.drawn)
        masked[canary.family][1] += len(canary.drawn)
    shares = {family: hit / drawn if drawn else None for family, (hit, drawn) in masked.items()}
    return TwinText([line for line, _ in together], [name for _, name in together], is_member, shares)
