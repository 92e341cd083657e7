"""Sample: a draw from the filler's whole distribution, without the words on the list of never-masked words.

The paper has no such method. In its Top-K, nearly all of a small filler's K best words are on the list. So the off-list
rule rarely finds a substitute like the masked word. Here the words on the list are excluded before the choice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.errors import ModelError
from tasks.filling.settings import CandidateMethod, Choose

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.prepared_fill import Learned


class Sample(CandidateMethod):
    """A draw from the filler's whole distribution over the words that are not on the list of never-masked words."""

    title: ClassVar[str] = "Sample"
    sentence: ClassVar[str] = "A draw from the filler’s whole distribution off the list; not in the paper."
    kind: Literal["sample"]
    temperature: float = Field(default=1.0, ge=0.01, le=100)
    """Sampling temperature: below 1 sharpens the distribution, above 1 flattens it."""

    def prepare(self, off_list: np.ndarray, learned: Learned) -> Choose:
        """A draw at the temperature."""
        return partial(draw, among(off_list), self.temperature)

    @property
    def drawn_at(self) -> float | None:
        """Sampling temperature."""
        return self.temperature


def among(allowed: np.ndarray) -> np.ndarray:
    """Indices of the allowed words, from ``(W,)`` booleans. Raises ``ModelError`` if there are none."""
    import numpy as np

    if not allowed.any():
        raise ModelError(
            "every word that this filler can write is on the list of never-masked words: nothing to sample"
        )
    return np.flatnonzero(allowed)


def draw(allowed: np.ndarray, temperature: float, scores: np.ndarray, random: np.random.Generator) -> tuple[int, bool]:
    """Draw word ``w`` with probability proportional to ``exp(score_w / temperature)`` over the allowed words.

    If all of these have the score minus infinity, the draw is from all words, as a fallback.

    The draw is an exponential race: the word with the smallest ``E_w / p_w`` wins, with ``E_w`` independent standard
    exponentials. It is robust to the last bits of the scores, which depend on the rest of the batch. A search in
    cumulated probabilities is not.
    """
    import numpy as np

    scores = scores / np.float32(temperature)
    logits = scores[allowed]
    best = logits.max()
    if fallback := bool(np.isneginf(best)):
        logits, best = scores, scores.max()
    clocks = random.standard_exponential(logits.size, dtype=np.float32)
    # The smallest positive number instead of 0 avoids 0 / 0.
    winner = int(np.argmax(np.exp(logits - best) / np.maximum(clocks, np.finfo(np.float32).tiny)))
    return winner if fallback else int(allowed[winner]), fallback
