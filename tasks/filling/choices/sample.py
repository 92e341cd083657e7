"""Sample: a draw from the filler's whole distribution over words that are off the list of kept words.

The paper has no such method. With its Top-K, a small filler's K best words are nearly all on the list, so the off-list
rule hardly ever finds a substitute of the masked word's kind; here the words on the list are taken out before choosing.
"""

from collections.abc import Sequence

import numpy as np

from tasks.errors import ModelError
from tasks.filling.choices.choice import Chosen, Forbidden, HeldBack, held_down, without_forbidden
from tasks.filling.marker_randomness import MarkerRandomness, Place


class DrawOffList:
    """Draws word ``w`` with probability proportional to ``exp(score_w / temperature)`` over the words off the list.

    The draw is an exponential race: the word whose ``E_w / p_w`` is smallest wins, with ``E_w`` independent standard
    exponentials. Unlike a search in cumulated probabilities it does not turn on the last bits of the scores, which
    depend on what else is in the batch.
    """

    def __init__(self, temperature: float, off_list: np.ndarray, randomness: MarkerRandomness) -> None:
        """``off_list``: ``(W,)`` booleans, which candidate words are not on the list of kept words."""
        self._allowed = np.flatnonzero(off_list)
        if self._allowed.size == 0:
            raise ModelError("every word that this filler can write is on the list of kept words: nothing to sample")
        self._temperature, self._randomness = temperature, randomness

    def choose(
        self,
        scores: np.ndarray,
        places: Sequence[Place],
        forbidden: Forbidden | None = None,
        held_back: Sequence[HeldBack] | None = None,
    ) -> Chosen:
        """Choose from ``(B, W)`` scores; where every word off the list is forbidden, from the whole distribution.

        Where words are held back, that is also so where those off the list are too few to hide one of them.
        """
        scores = without_forbidden(scores, forbidden) / np.float32(self._temperature)
        if held_back is not None:
            drawn = [self._hiding(*row) for row in zip(scores, places, held_back, strict=True)]
            return Chosen(np.array([word for word, _ in drawn], np.int64), np.array([late for _, late in drawn], bool))
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

    def _hiding(self, scores: np.ndarray, place: Place, held_back: HeldBack) -> tuple[int, bool]:
        """The draw where words are held back, and whether it is a fallback."""
        # In float64, so that what is unlikely still has a probability.
        weights = np.exp(scores.astype(np.float64) - scores.max())
        everything = np.arange(len(scores))
        for among in (self._allowed, everything):
            probabilities = np.zeros(len(scores))
            held = held_down(weights[among], held_back.most[among])
            if held is not None:
                probabilities[among] = held
                probabilities[held_back.candidates] = 0
            # Nothing is left where a marker stands for several words, and these are all there are.
            if probabilities.any():
                return self._race(probabilities, place), among is everything
        raise ModelError(
            f"line {place.line}: there are too few words that this filler may write to hide which one is avoided; "
            "leave forbid_original out, or raise the temperature"
        )

    def _race(self, weights: np.ndarray, place: Place) -> int:
        clocks = self._randomness.at(place).standard_exponential(weights.size, dtype=np.float32)
        # The smallest positive number instead of 0 keeps 0 / 0 out of the race.
        return int(np.argmax(weights / np.maximum(clocks, np.finfo(np.float32).tiny)))
