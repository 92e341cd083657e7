"""A score of unit sequences that is a function of the sequence alone: what fusions are made of."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from tasks.errors import ModelError, SpeechError
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.speech.recogniser.units import WORD_BEGIN, Units
from tasks.speech.search.predictor_states import PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT


class SpelledUnits:
    """Letters of each unit, and whether it begins a word."""

    def __init__(self, units: Units) -> None:
        """Raises ``ModelError`` where a unit reaches across two words."""
        self.letters = [str(units.decode([index])) for index in range(len(units.pieces))]
        self.begins = np.array(
            [
                piece.startswith(WORD_BEGIN) and (bool(letters) or piece == WORD_BEGIN)
                for piece, letters in zip(units.pieces, self.letters, strict=True)
            ]
        )
        self.has_letters = np.array([bool(letters) for letters in self.letters])
        across = sum(" " in letters for letters in self.letters)
        across += sum(WORD_BEGIN in piece[1:] for piece in units.pieces)
        if across:
            raise ModelError(
                f"{across} units of the recogniser reach across two words; a language model of words cannot be fused "
                "with it"
            )


class NodeValues:
    """Numbers by node that grow with the tree."""

    def __init__(self, kind: type = np.float64) -> None:
        self._values: np.ndarray = np.zeros(1024, dtype=kind)

    def set(self, first: int, values: np.ndarray) -> None:
        """The values of the nodes from ``first`` on."""
        if (end := first + len(values)) > len(self._values):
            self._values = np.concatenate([self._values, np.zeros(2 * end - len(self._values), self._values.dtype)])
        self._values[first:end] = values

    def put(self, nodes: np.ndarray, values: np.ndarray) -> None:
        """The values of these nodes."""
        self._values[nodes] = values

    def __getitem__(self, nodes: np.ndarray) -> np.ndarray:
        return self._values[nodes]


class PrefixScore:
    """Log-probabilities of the nodes of a prefix tree, computed once for each node.

    This one knows what every unit adds behind a node at once, by ``rows``. One that does not (``exact`` is false) gives
    its own answer to every question.
    """

    exact = True
    """Whether what a unit adds is known before the node is made, for all units at once; if not, it is never above 0,
    and nodes must be settled before their values are asked for."""

    def start(self, tree: SequenceTree, states: PredictorStates, model: "RNNT") -> None:
        """Begin with a tree that holds the root alone."""
        self._tree, self._values = tree, NodeValues()
        self._known, self._rows = np.zeros(0, dtype=np.int64), np.zeros((0, tree.units), dtype=np.float32)

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each of different nodes (N, V - 1), float32."""
        raise NotImplementedError

    def extend(self, first: int) -> None:
        """Nodes from ``first`` on are new; their parents are older."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        self._values.set(first, self._behind(parents, units))

    def _behind(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        if not np.isin(nodes, self._known).all():
            self.of_units(nodes)
        found: np.ndarray = self._values[nodes] + self._rows[np.searchsorted(self._known, nodes), units]
        return found

    def settle(self, nodes: np.ndarray) -> None:
        """Find out the values of nodes (N,), where they are not known yet."""
        return

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence (N,), float64."""
        found: np.ndarray = self._values[nodes]
        return found

    def estimates(self, nodes: np.ndarray) -> np.ndarray:
        """About the value of each node (N,), which need not be settled, float64; where ``exact``, the value."""
        return self.values(nodes)

    def of_units(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1), float32; where not ``exact``, no less than that."""
        # ``extend`` is asked for children of these next.
        self._known, inverse = np.unique(nodes, return_inverse=True)
        self._rows = self.rows(self._known)
        return self._rows[inverse]

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value or estimate of each node (N,) with one unit more, float64, and whether it is an estimate; behind a node
        that counts by its estimate, it is."""
        return self._behind(nodes, units), np.zeros(len(nodes), dtype=bool)

    def keep(self, chosen: np.ndarray, nodes: np.ndarray) -> None:
        """Of what ``ahead`` was asked last, these (M,) are nodes now: those whose values it found are settled."""
        return

    def retain(self, nodes: np.ndarray) -> None:
        """Only these nodes can be extended from now on."""
        return

    def finish(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        return self.values(nodes)


def sentence_log_probabilities(
    score: PrefixScore, sequences: Sequence[tuple[int, ...]], model: "RNNT", blank: int
) -> np.ndarray:
    """Log-probability of each sequence of units as a whole sentence (N,), as the search would have it."""
    tree = SequenceTree(blank)
    score.start(tree, PredictorStates(model, blank, tree), model)
    nodes = np.full(len(sequences), ROOT)
    for place in range(max(map(len, sequences), default=0)):
        longer = np.array([index for index, sequence in enumerate(sequences) if len(sequence) > place])
        units = np.array([sequences[index][place] for index in longer.tolist()])
        nodes[longer], before = tree.children(nodes[longer], units)
        if tree.size > before:
            score.extend(before)
        score.retain(nodes)
    return score.finish(nodes)


# What stands for the language that a transducer has learned from its own training text; fusion takes it off.
_DISCOUNT = 0.5


class UnitBigram(PrefixScore):
    """A bigram of units (LODR, Zheng et al. 2022); see ``PrefixScore``. It has no sentence end."""

    def __init__(self, log_probabilities: np.ndarray) -> None:
        """``log_probabilities`` (V + 1, V): of each unit behind each unit, and behind the beginning in the last row."""
        self._table = log_probabilities.astype(np.float32)

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        # The root's unit is -1: the last row.
        return self._table[self._tree.unit[nodes]]


def unit_bigram(sequences: Iterable[list[int]], units: int) -> UnitBigram:
    """A bigram with absolute discounting, estimated on the units of the transducer's training text.

    Raises ``SpeechError`` where there is no unit.
    """
    counts = np.zeros((units + 1, units))
    for sequence in sequences:
        np.add.at(counts, ([units, *sequence][: len(sequence)], sequence), 1)
    if not counts.any():
        raise SpeechError("the recogniser's training text holds no word, so it has no bigram")
    single = (counts.sum(0) + 1) / (counts.sum() + units)
    totals = counts.sum(1, keepdims=True)
    freed = _DISCOUNT * (counts > 0).sum(1, keepdims=True)
    share = np.where(totals > 0, freed / np.maximum(totals, 1), 1.0)
    return UnitBigram(np.log(np.maximum(counts - _DISCOUNT, 0) / np.maximum(totals, 1) + share * single))


class ZeroEncoder(PrefixScore):
    """The transducer's predictor and joiner without a signal, over units alone (Variani et al. 2020, section 4.2)."""

    def start(self, tree: SequenceTree, states: PredictorStates, model: "RNNT") -> None:
        """Begin with a tree that holds the root alone."""
        super().start(tree, states, model)
        self._states, self._model = states, model

    def extend(self, first: int) -> None:
        """Score the nodes from ``first`` on."""
        self._states.ensure(np.unique(self._tree.parent[first:]))
        super().extend(first)

    @torch.inference_mode()
    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        outputs = self._states.outputs(nodes)[:, None]
        ones = torch.ones(len(nodes), dtype=torch.int64, device=outputs.device)
        joined, _, _ = self._model.join(torch.zeros_like(outputs), ones, outputs, ones)
        return torch.log_softmax(joined[:, 0, 0, : self._tree.units], dim=1).cpu().numpy()
