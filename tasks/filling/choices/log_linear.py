"""Log-linear: a draw that weighs what the context says against how frequent words are (not in the paper).

For candidate ``w`` in context ``x``, with p_filler the filler's probability among the candidates,

    p(w | x)  proportional to  p_filler(w | x)^a  *  p_frequency(w)^b  *  p_average(w)^-d

over the candidates: words that are off the list of kept words (all words where there is no list), that the filler has
as one piece and that the word counts hold. Why each term:

- A filler that is trained to guess words learns p(w | x) = p(x | w) p(w) / p(x) of *its* training text. Only p(x | w),
  what the context says about the word, is wanted of it; the prior p(w) of the words that are masked here is another
  one. Dividing by the filler's own prior and multiplying by the wanted one is the exact correction where p(x | w) is
  the same (Saerens, Latinne and Decaestecker 2002, equation 2.4): a = b = d = 1. The filler's own prior is estimated by
  ``p_average``, its mean probability over masked places of generic text; the wanted one by the frequency in the word
  counts, which adds up far more text than a small filler has seen.
- A weak filler is not calibrated: its odds between contexts are too bold or too timid, and a mean over some thousand
  places is no exact prior. The exponents allow for that: a = b = d = 1 is the correction in full, a = 1, b = d = 0 the
  method ``sample``, b = 1, a = d = 0 the frequency draw over the same candidates.
- The exponents are learned, not chosen: words of generic text are masked by us as the technique masks, and a, b, d
  maximise the conditional likelihood of the words that stood there (``log_linear.feature_weights``). That is concave,
  so it has one solution, and it needs no private word: neither the sidecar nor any private text is looked at.
- What is learned is of two kinds, as the same formula shows when it is written

      p(w | x)  proportional to  (p_filler(w | x) / p_average(w))^a  *  [p_frequency(w)^b * p_average(w)^(a - d)]

  The first factor is what the context says, and a says how far it can be trusted. The bracket is a prior, fitted to
  the words of the generic text. Private text has other words: there only the first factor carries over, and the prior
  is that of the word counts, b = 1 and d = a (``prior: word_counts``, the default), or with the same exponents that of
  the private domain, as far as the words round the masks tell it (``prior: domain``, see ``domain_frequencies``).
  Where the sidecar may be read, noisy counts of the masked words say more, with differential privacy for each line
  (``prior: counted``, see ``counted_frequencies``).
  For private text that is like the generic text the bracket may be kept as learned (``prior: tuning_text``).

The wanted prior may be adjusted to the masked text itself (``prior_steps``): with L(w, x) = p_filler^a / p_average^d
for the likelihood and pi_0 proportional to p_frequency^b for the first prior, each EM step sets pi to the mean of
pi(w) L(w, x) / sum over v of pi(v) L(v, x) over masked places, smoothed towards pi_0 (``log_linear.word_prior``). It
sees the contexts of the masked corpus and no masked word.

Where words were counted (``prior: counted``), it is also known how often the fills are to write each of them, and the
formula alone does not: p_average is the filler's mean over generic text, and this corpus has other contexts. So each
counted word, the names together and the rest together get one more factor m, with which the mean of p(w | x) over
masked places of the corpus is what was counted (``log_linear.word_prior``).

The draw is the exponential race of ``sample``, at temperature 1: at every order of filling the same for a seed, line
and marker, whatever else is in the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.filling.choices.choice import Chosen, Forbidden, HeldBack
from tasks.filling.choices.sample import DrawOffList
from tasks.filling.marker_randomness import MarkerRandomness, Place


@dataclass(frozen=True)
class LogLinearScores:
    """The log of the unnormalised probability, of all ``W`` words that the filler can write."""

    filler_weight: float
    """a."""
    constant: np.ndarray
    """``(W,)`` float32, finite: what does not depend on the context."""

    def of(self, scores: np.ndarray) -> np.ndarray:
        """``(B, W)`` of the filler's ``(B, W)`` scores."""
        return np.float32(self.filler_weight) * scores + self.constant


class DrawLogLinear:
    """Draws among the allowed words by log-linear scores."""

    def __init__(self, scores: LogLinearScores, allowed: np.ndarray, randomness: MarkerRandomness) -> None:
        """``allowed``: ``(W,)`` booleans, which words are candidates."""
        self._scores, self._draw = scores, DrawOffList(1.0, allowed, randomness)

    def choose(
        self,
        scores: np.ndarray,
        places: Sequence[Place],
        forbidden: Forbidden | None = None,
        held_back: Sequence[HeldBack] | None = None,
    ) -> Chosen:
        """Choose from ``(B, W)`` scores; where every candidate is forbidden, from all words."""
        return self._draw.choose(self._scores.of(scores), places, forbidden, held_back)
