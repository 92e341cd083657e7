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
  maximise the conditional likelihood of the words that stood there (``masked_lm.estimation``). That is concave,
  so it has one solution, and it needs no private word: neither the sidecar nor any private text is looked at.
- What is learned is of two kinds, as the same formula shows when it is written

      p(w | x)  proportional to  (p_filler(w | x) / p_average(w))^a  *  [p_frequency(w)^b * p_average(w)^(a - d)]

  The first factor is what the context says, and a says how far it can be trusted. The bracket is a prior, fitted to
  the words of the generic text. Private text has other words: there only the first factor carries over, and the prior
  is that of the word counts, b = 1 and d = a (``prior: word_counts``, the default), or with the same exponents that of
  the private domain, as far as the words round the masks tell it (``prior: domain``, see ``domain_frequencies``).
  Where the sidecar may be read, noisy counts of the masked words say more, with differential privacy for each line
  (``prior: counted``, see ``counted_frequencies``).

Where words were counted (``prior: counted``), it is also known how often the fills are to write each of them, and the
formula alone does not: p_average is the filler's mean over generic text, and this corpus has other contexts. So each
counted word, the names together and the rest together get one more factor m, with which the mean of p(w | x) over
masked places of the corpus is what was counted (``masked_lm.estimation``).

The draw is the exponential race of ``sample``, at temperature 1: at every order of filling the same for a seed, line
and marker, whatever else is in the batch.

A causal language model writes words of any number of pieces, of which there are too many for a mean over places: its
own prior p_average is taken to be the frequency in the word counts, which is that of the text that it has read as far
as anybody knows, and a is 1 where nobody says. Its candidates are drawn as those of ``sample`` at the temperature 1 / a
(``causal_lm.candidates``), from p(first piece)^a times the mean of p_frequency^b * p_average^-d over the words that
begin so; each then has its own factor, and what stands behind the marker counts as for ``sample``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.corpora.words import fold
from tasks.filling.methods.sample import DrawOffList
from tasks.filling.settings import CandidateMethod, CountingMethod
from tasks.settings.base import Settings

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.choice import Chosen, Forbidden
    from tasks.filling.context import FillContext, Learned
    from tasks.filling.marker_randomness import MarkerRandomness, Place


class LogLinearWeights(Settings):
    """Weights of what ``log_linear`` knows of a word; ``null`` is learned from generic text, or follows from what is
    learned (see ``prior`` and this module)."""

    filler: float | None = None
    """Of the log-probability that the filler gives the word in its context."""
    frequency: float | None = None
    """Of the log of its frequency in the word counts."""
    average: float | None = None
    """Of the log of its mean probability over places of generic text, with a minus sign: what the filler always says
    is no news."""


class LogLinear(CountingMethod, CandidateMethod):
    """A draw that weighs the filler's probabilities against how frequent words are."""

    reads_tuning_text: ClassVar[bool] = True
    title: ClassVar[str] = "Log-linear"
    sentence: ClassVar[str] = (
        "The filler’s probability, less its own prior, times the frequency of words in a domain like this one; "
        "not in the paper."
    )
    kind: Literal["log_linear"]
    weights: LogLinearWeights = LogLinearWeights()
    """How much each of these counts."""
    tuning_places: int = Field(default=1000, ge=1)
    """At most so many masked words of generic text are guessed to learn the weights."""
    tuning_share: float = Field(default=0.15, gt=0, lt=1)
    """Share of the words of generic text to mask where the technique has no list of kept words."""
    tuning_seed: int = Field(default=1, ge=0)
    """Seed of their choice, apart from the seed of the fill."""
    prior: Literal["word_counts", "domain", "counted"] = "word_counts"
    """How frequent words are taken to be where nothing is known of the context: as in the word counts; as in the
    private domain, by generic text that is like what was not masked (see ``domain_frequencies``); or the same, and as
    noisy counts of the masked words say (see ``counted_frequencies``; needs the sidecar)."""
    prior_places: int = Field(default=3000, ge=1)
    """``prior: counted`` looks at so many places of the masked text, so that the fills have its counts."""

    @property
    def learns_weights(self) -> bool:
        """Whether a weight is to be learned, or the filler's average is used."""
        weights = self.weights
        return None in (weights.filler, weights.frequency, weights.average) or weights.average != 0

    def learn(self, context: FillContext) -> Learned:
        """How frequent words are, and how much that and the filler weigh."""
        learned = super().learn(context)
        if context.model.is_causal:
            return self._of_causal(context, learned)
        from tasks.filling.masked_lm.weighing import prepare

        weighing = prepare(context, self, learned.frequencies or context.frequencies)
        return replace(learned.also(weighing.frequencies, log_linear=weighing.measured), weighing=weighing)

    def _of_causal(self, context: FillContext, learned: Learned) -> Learned:
        """What each word's frequency adds to a causal language model's score."""
        import numpy as np

        filler, frequency, average = 1 / self.drawn_at, self.weights.frequency, self.weights.average
        weights = {
            "filler": filler,
            "frequency": 1.0 if frequency is None else frequency,
            "average": filler if average is None else average,
        }
        public, wanted = context.frequencies, learned.frequencies or context.frequencies
        logs = [np.log(of / of.sum()) for of in (wanted.counts, public.counts)]
        factors = weights["frequency"] * logs[0] - weights["average"] * logs[1]
        # Of two spellings of a word the more frequent one, which stands first, counts.
        of_word = dict(zip(map(fold, reversed(public.words)), reversed(factors.tolist()), strict=True))
        measured = {**learned.measured, "log_linear": {"weights": weights}}
        return replace(learned, word_factors=of_word, measured=measured)

    @property
    def masked_only(self) -> tuple[str, str] | None:
        """What is learned from a masked language model's scores, too."""
        if self.counts_masked_words:
            return f"prior {self.prior!r}", "take prior: domain"
        return super().masked_only

    @property
    def drawn_at(self) -> float:
        """Of a causal language model's candidates: its weight, turned round."""
        return 1 / (self.weights.filler or 1.0)

    def choice(
        self, off_list: np.ndarray, randomness: MarkerRandomness, learned: Learned | None = None
    ) -> DrawLogLinear | DrawOffList:
        """A draw by the weights that were learned; of a causal language model's candidates, which are weighed."""
        if learned is None or learned.weighing is None:
            return DrawOffList(self.drawn_at, off_list, randomness)
        return DrawLogLinear(learned.weighing.scores, learned.weighing.allowed & off_list, randomness)


@dataclass(frozen=True)
class LogLinearScores:
    """The log of the unnormalised probability, of all ``W`` words that the filler can write."""

    filler_weight: float
    """a."""
    constant: np.ndarray
    """``(W,)`` float32, finite: what does not depend on the context."""

    def of(self, scores: np.ndarray) -> np.ndarray:
        """``(B, W)`` of the filler's ``(B, W)`` scores."""
        import numpy as np

        return np.float32(self.filler_weight) * scores + self.constant


class DrawLogLinear:
    """Draws among the allowed words by log-linear scores."""

    def __init__(self, scores: LogLinearScores, allowed: np.ndarray, randomness: MarkerRandomness) -> None:
        """``allowed``: ``(W,)`` booleans, which words are candidates."""
        self._scores, self._draw = scores, DrawOffList(1.0, allowed, randomness)

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores; where every candidate is forbidden, from all words."""
        return self._draw.choose(self._scores.of(scores), places, forbidden)
