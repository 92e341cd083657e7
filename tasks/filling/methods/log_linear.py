"""Log-linear: a draw by the filler's probability and by word frequency (not in the paper).

For candidate ``w`` in context ``x``, with p_filler the filler's probability among the candidates,

    p(w | x)  proportional to  p_filler(w | x)^a  *  p_frequency(w)^b  *  p_average(w)^-d

Candidates are not on the list of never-masked words (if there is a list), are one piece of the filler, and occur in the
word counts. The reasons for each term:

- A filler that predicts words learns p(w | x) = p(x | w) p(w) / p(x) of *its* training text. Only the likelihood
  p(x | w) is useful here: masked words have another prior p(w). Division by the filler's prior and multiplication by
  the wanted prior is the exact correction if p(x | w) is the same (Saerens, Latinne and Decaestecker 2002, equation
  2.4): a = b = d = 1. ``p_average`` estimates the filler's prior: its mean probability over masked places of generic
  text. The frequency in the word counts estimates the wanted prior, from far more text than a small filler has seen.
- A weak filler is not calibrated: its odds between contexts are too bold or too timid. A mean over some thousand places
  is no exact prior. The exponents correct for both. a = b = d = 1 is the full correction; a = 1, b = d = 0 is the
  method ``sample``; b = 1, a = d = 0 is the frequency draw over the same candidates.
- The default is a = 2, b = 1, d = a. With a = 2 a small filler's text reads better at the same perplexity
  (docs/research/experiments.md). No private word is used: neither the sidecar nor any private text is read.
- The prior p_frequency is one of three. The frequency in the word counts is the default (``prior: word_counts``).
  ``prior: domain`` estimates the private domain from the words around the masks (see ``domain_frequencies``). If the
  sidecar may be read, noisy counts of the masked words are better, with differential privacy for each line
  (``prior: counted``, see ``counted_frequencies``).

With counted words (``prior: counted``), the wanted frequencies of the fills are known too. The formula alone misses
them: p_average is a mean over generic text, and this corpus has other contexts. So each counted word, all names
together and the rest together get a factor m. With it, the mean of p(w | x) over masked places of the corpus equals the
counted frequency (``masked_lm.estimation``).

The draw is the exponential race of ``sample``, at temperature 1. It depends on seed, line and marker, not on the order
of filling or the rest of the batch.

A causal language model writes words of several pieces: too many words for a mean over places. So the frequency in the
word counts replaces its prior p_average, as an estimate of the text that it has read. Candidates are drawn as for
``sample`` at the temperature 1 / a (``causal_lm.candidates``). First pieces are drawn from p(first piece)^a times the
mean of p_frequency^b * p_average^-d over the words that begin with it. Each candidate then gets its own factor, and the
text after the marker counts as for ``sample``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.corpora.words import fold
from tasks.filling.methods.sample import among, draw
from tasks.filling.settings import CandidateMethod, Choose, CountingMethod
from tasks.settings.base import Settings

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.opened_filler import Words
    from tasks.filling.prepared_fill import Corpus, Learned


class LogLinearWeights(Settings):
    """Weights of ``log_linear``."""

    filler: float = Field(default=2.0, gt=0)
    """Weight a of the filler's log-probability of the word in its context."""
    frequency: float = 1.0
    """Weight b of the log of the word's frequency."""
    average: float | None = None
    """Weight d, subtracted, of the log of the filler's mean probability of the word over places of generic text. A word
    that the filler predicts everywhere is no evidence. ``null``: the weight of the filler."""

    def values(self) -> dict[str, float]:
        """The three weights by name."""
        average = self.filler if self.average is None else self.average
        return {"filler": self.filler, "frequency": self.frequency, "average": average}


class LogLinear(CountingMethod, CandidateMethod):
    """A draw by the filler's probabilities and word frequencies."""

    reads_tuning_text: ClassVar[bool] = True
    title: ClassVar[str] = "Log-linear"
    sentence: ClassVar[str] = (
        "The filler’s probability, less its own prior, times the frequency of words in a domain like this one; "
        "not in the paper."
    )
    kind: Literal["log_linear"]
    weights: LogLinearWeights = LogLinearWeights()
    """Weights of filler, frequency and average."""
    tuning_places: int = Field(default=1000, ge=1)
    """Maximum number of masked words of generic text for the filler's mean probabilities."""
    tuning_share: float = Field(default=0.15, gt=0, lt=1)
    """Share of the words of generic text to mask, for a technique without a list of never-masked words."""
    tuning_seed: int = Field(default=1, ge=0)
    """Seed of the choice of tuning places, independent of the seed of the fill."""
    prior: Literal["word_counts", "domain", "counted"] = "word_counts"
    """Source of the word frequencies. ``word_counts``: the word counts. ``domain``: an estimate for the private domain,
    from generic text like the unmasked words (see ``domain_frequencies``). ``counted``: this estimate with noisy counts
    of the masked words (see ``counted_frequencies``; needs the sidecar)."""
    prior_places: int = Field(default=3000, ge=1)
    """Maximum number of places of the masked text that ``prior: counted`` reads to match the counts."""

    @property
    def uses_average(self) -> bool:
        """Whether the filler's mean probabilities are used."""
        return self.weights.average != 0

    def learn(self, words: Words, corpus: Corpus) -> Learned:
        """Learn the word frequencies and the filler's mean probabilities."""
        learned = super().learn(words, corpus)
        if words.opened.is_causal:
            return self._of_causal(words, learned)
        from tasks.filling.masked_lm.weighing import prepare

        weighing = prepare(words, corpus, self, learned.frequencies or words.frequencies)
        return replace(learned.also(weighing.frequencies, log_linear=weighing.measured), weighing=weighing)

    def _of_causal(self, words: Words, learned: Learned) -> Learned:
        """Add the terms of word frequencies for a causal language model's scores."""
        import numpy as np

        weights = self.weights.values()
        public, wanted = words.frequencies, learned.frequencies or words.frequencies
        logs = [np.log(of / of.sum()) for of in (wanted.counts, public.counts)]
        factors = weights["frequency"] * logs[0] - weights["average"] * logs[1]
        # Among the spellings of a word, the first and most frequent one counts.
        of_word = dict(zip(map(fold, reversed(public.words)), reversed(factors.tolist()), strict=True))
        measured = {**learned.measured, "log_linear": {"weights": weights}}
        return replace(learned, word_factors=of_word, measured=measured)

    @property
    def drawn_at(self) -> float:
        """Temperature of the draw of a causal language model's candidates: 1 / a."""
        return 1 / self.weights.filler

    def prepare(self, off_list: np.ndarray, learned: Learned) -> Choose:
        """The choice: a draw by the weights, or by the weighted scores of a causal language model."""
        weighing = learned.weighing
        if weighing is None:
            return partial(draw, among(off_list), self.drawn_at)
        return partial(draw_weighed, among(weighing.allowed & off_list), weighing.filler_weight, weighing.constant)


def draw_weighed(
    allowed: np.ndarray, weight: float, constant: np.ndarray, scores: np.ndarray, random: np.random.Generator
) -> tuple[int, bool]:
    """Draw by ``weight * score + constant``; ``constant``: ``(W,)`` float32, the terms without context."""
    import numpy as np

    forbidden = np.isneginf(scores)
    scores[forbidden] = 0
    scores = np.float32(weight) * scores + constant
    scores[forbidden] = -np.inf
    return draw(allowed, 1.0, scores, random)
