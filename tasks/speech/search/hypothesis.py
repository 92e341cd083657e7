"""What a beam search hands out for an utterance."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A sequence of units with the parts of its score; log-probabilities are in nats."""

    units: tuple[int, ...]
    """Ids of the recogniser's units, no blank among them."""
    score: float
    """What hypotheses are ranked by: the weighted sum of the parts, divided as the settings say."""
    transducer: float
    """Log-probability that the transducer gives the units, over all alignments that the beam held."""
    language_model: float = 0.0
    """Log-probability that the language model gives the whole sentence, its end among it; 0 without one."""
    internal: float = 0.0
    """Log-probability by what stands for the transducer's internal language model; 0 without one."""
    words: int = 0
    """Words of the sentence; counted with a language model alone."""
