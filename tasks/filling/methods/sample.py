"""Sample: a draw from the filler's whole distribution over words that are off the list of kept words.

The paper has no such method. With its Top-K, a small filler's K best words are nearly all on the list, so the off-list
rule hardly ever finds a substitute of the masked word's kind; here the words on the list are taken out before choosing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.errors import ModelError
from tasks.filling.settings import CandidateMethod

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.choice import Chosen, Forbidden
    from tasks.filling.context import Learned
    from tasks.filling.marker_randomness import MarkerRandomness, Place


class Sample(CandidateMethod):
    """A draw from the filler's whole distribution over words that are not on the list of kept words."""

    title: ClassVar[str] = "Sample"
    colour: ClassVar[int | None] = 4
    sentence: ClassVar[str] = "A draw from the filler’s whole distribution off the list; not in the paper."
    kind: Literal["sample"]
    temperature: float = Field(default=1.0, ge=0.01, le=100)
    """Below 1 sharpens the distribution, above 1 flattens it."""

    def choice(self, off_list: np.ndarray, randomness: MarkerRandomness, learned: Learned | None = None) -> DrawOffList:
        """A draw at the temperature."""
        return DrawOffList(self.temperature, off_list, randomness)

    @property
    def drawn_at(self) -> float | None:
        """The temperature."""
        return self.temperature


class DrawOffList:
    """Draws word ``w`` with probability proportional to ``exp(score_w / temperature)`` over the words off the list.

    The draw is an exponential race: the word whose ``E_w / p_w`` is smallest wins, with ``E_w`` independent standard
    exponentials. Unlike a search in cumulated probabilities it does not turn on the last bits of the scores, which
    depend on what else is in the batch.
    """

    def __init__(self, temperature: float, off_list: np.ndarray, randomness: MarkerRandomness) -> None:
        """``off_list``: ``(W,)`` booleans, which candidate words are not on the list of kept words."""
        import numpy as np

        self._allowed = np.flatnonzero(off_list)
        if self._allowed.size == 0:
            raise ModelError("every word that this filler can write is on the list of kept words: nothing to sample")
        self._temperature, self._randomness = temperature, randomness

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores; where every word off the list is forbidden, from the whole distribution."""
        import numpy as np

        from tasks.filling.choice import Chosen, without_forbidden

        scores = without_forbidden(scores, forbidden) / np.float32(self._temperature)
        logits = scores[:, self._allowed]  # (B, W off the list)
        best = logits.max(axis=1, keepdims=True)
        fallbacks = np.isneginf(best[:, 0])
        weights = np.exp(logits - np.where(np.isneginf(best), 0, best))  # (B, W off the list), at most 1
        winners = np.empty(len(scores), dtype=np.int64)
        for row, place in enumerate(places):
            if fallbacks[row]:
                winners[row] = self._race(np.exp(scores[row] - scores[row].max()), place)
            else:
                winners[row] = self._allowed[self._race(weights[row], place)]
        return Chosen(winners, fallbacks)

    def _race(self, weights: np.ndarray, place: Place) -> int:
        import numpy as np

        clocks = self._randomness.at(place).standard_exponential(weights.size, dtype=np.float32)
        # The smallest positive number instead of 0 keeps 0 / 0 out of the race.
        return int(np.argmax(weights / np.maximum(clocks, np.finfo(np.float32).tiny)))
