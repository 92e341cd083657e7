"""What a beam search asks of a fusion with language models."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tasks.language_model.sequence_tree import SequenceTree
from tasks.speech.search.predictor_states import PredictorStates


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


class Fusion(Protocol):
    """What is added to the transducer's score of a unit sequence; a function of the sequence alone.

    What takes long to find out has an estimate as well. The estimate counts at first; every few frames those that may
    stay are settled, all of them at once. Whole sentences never count by an estimate.
    """

    def start(self, tree: SequenceTree, states: PredictorStates, model: Any) -> None:
        """Begin with a tree that holds the root alone."""

    def extend(self, first: int) -> None:
        """Nodes of the tree from ``first`` on are new."""

    def settle(self, nodes: np.ndarray) -> None:
        """Find out what is added to these nodes (N,), where that is not known yet."""

    def added(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """What is added to the scores of nodes (N,), or the estimate of it; float64."""

    def most(self, nodes: np.ndarray) -> np.ndarray:
        """No less than what each unit changes ``added`` by: (N, V - 1) or (V - 1,), float32."""

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``added`` of each node (N,) with one unit more, and whether that is an estimate; so are all behind one."""

    def keep(self, chosen: np.ndarray, nodes: np.ndarray) -> None:
        """Of what ``ahead`` was asked last, these (M,) are nodes now, and ``extend`` was told of them."""

    def retain(self, nodes: np.ndarray) -> None:
        """Only these nodes can be extended from now on."""

    def finish(self, nodes: np.ndarray) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """What is added to whole sentences (N,), and the parts of each for ``Hypothesis``."""
