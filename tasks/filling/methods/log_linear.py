"""Log-linear: a draw by the filler's probability and by word frequency (``docs/log_linear.md``; not in the paper).

For candidate ``w`` in context ``x``, with p_filler the filler's probability among the candidates,

    p(w | x)  proportional to  p_filler(w | x)^a  *  p_frequency(w)^b  *  p_average(w)^-d

``p_average`` estimates the filler's prior: its mean probability over masked places of generic text. a = b = d = 1
replaces the filler's prior by the wanted one exactly (Saerens, Latinne and Decaestecker 2002, equation 2.4). The
default is a = 2, b = 1, d = a, since a weak filler is not calibrated. The draw is that of ``sample``. With counted
words (``prior: counted``), fills have the counted frequencies (``masked_lm.weighing``).

A causal language model writes too many words for a mean over places. So the frequency in the word counts replaces its
prior p_average. Candidates are drawn as for ``sample`` at the temperature 1 / a, and each gets its factor.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.filling.methods.sample import draw
from tasks.filling.settings import CandidateMethod, CountingMethod
from tasks.settings.base import Settings

if TYPE_CHECKING:
    import numpy as np


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
    prior_places: int = Field(default=3000, ge=1)
    """Maximum number of places of the masked text that ``prior: counted`` reads to match the counts."""

    @property
    def drawn_at(self) -> float:
        """Temperature of the draw of a causal language model's candidates: 1 / a."""
        return 1 / self.weights.filler

    def choose(self, scores: "np.ndarray", off_list: "np.ndarray", random: "np.random.Generator") -> tuple[int, bool]:
        """A draw among a causal language model's candidates, whose scores have their factors."""
        return draw(scores, off_list, self.drawn_at, random)
