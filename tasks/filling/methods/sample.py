"""Sample: a draw from the filler's whole distribution, without the words on the list of never-masked words.

The paper has no such method. In its Top-K, nearly all of a small filler's K best words are on the list. So the off-list
rule rarely finds a substitute like the masked word. Here the words on the list are excluded before the choice.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.errors import ModelError
from tasks.filling.settings import CandidateMethod

if TYPE_CHECKING:
    import numpy as np


class Sample(CandidateMethod):
    """A draw from the filler's whole distribution over the words that are not on the list of never-masked words."""

    title: ClassVar[str] = "Sample"
    sentence: ClassVar[str] = "A draw from the filler’s whole distribution off the list; not in the paper."
    kind: Literal["sample"]
    temperature: float = Field(default=1.0, ge=0.01, le=100)
    """Sampling temperature: below 1 sharpens the distribution, above 1 flattens it."""

    @property
    def drawn_at(self) -> float | None:
        """Sampling temperature."""
        return self.temperature

    def check_words(self, off_list: "np.ndarray") -> None:
        """Raise ``ModelError`` if every word of the filler is on the list."""
        if not off_list.any():
            raise ModelError(
                "every word that this filler can write is on the list of never-masked words: nothing to sample"
            )

    def choose(self, scores: "np.ndarray", off_list: "np.ndarray", random: "np.random.Generator") -> tuple[int, bool]:
        """A draw at the temperature."""
        return draw(scores, off_list, self.temperature, random)


def draw(
    scores: "np.ndarray", allowed: "np.ndarray", temperature: float, random: "np.random.Generator"
) -> tuple[int, bool]:
    """Draw word ``w`` with probability proportional to ``exp(score_w / temperature)`` over the allowed words.

    ``scores``: ``(W,)`` float32; ``allowed``: ``(W,)`` booleans. If no allowed word has a finite score, the draw is
    from all words, as a fallback.

    The draw is an exponential race: the word with the smallest ``E_w / p_w`` wins, with ``E_w`` independent standard
    exponentials. It is robust to the last bits of the scores, which depend on the rest of the batch. A search in
    cumulated probabilities is not.
    """
    import numpy as np

    scores = scores / np.float32(temperature)
    chosen = np.flatnonzero(allowed)
    best = scores[chosen].max(initial=-np.inf)
    if fallback := bool(np.isneginf(best)):
        chosen, best = np.arange(scores.size), scores.max()
    clocks = random.standard_exponential(chosen.size, dtype=np.float32)
    # The smallest positive number instead of 0 avoids 0 / 0.
    winner = np.argmax(np.exp(scores[chosen] - best) / np.maximum(clocks, np.finfo(np.float32).tiny))
    return int(chosen[winner]), fallback
