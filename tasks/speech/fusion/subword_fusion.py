"""A language model over the recogniser's own units: every unit has its score at once, and nothing is looked ahead.

Such a model is a folder of kind ``transformer`` or ``ngram`` whose vocabulary is the units, in their order. A model of
other units would score, and mean nothing, so it is refused.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError, ModelError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.language_models import NextWords
from tasks.language_model.sequence_tree import SequenceTree
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID, Vocabulary
from tasks.speech.fusion.prefix_score import NodeValues, PrefixScore
from tasks.speech.recogniser.units import WORD_BEGIN, Units
from tasks.speech.search.predictor_states import PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT


def unit_vocabulary(pieces: list[str]) -> Vocabulary:
    """The vocabulary of a language model over these units; a unit named like a special token gets brackets more."""
    names = (f"<{piece}>" if piece in SPECIAL_TOKENS else piece for piece in pieces)
    return Vocabulary((*SPECIAL_TOKENS, *names))


def is_of_units(vocabulary: Vocabulary) -> bool:
    """Whether a vocabulary is one of units: some of its tokens have the mark of a word's beginning."""
    return any(token.startswith(WORD_BEGIN) for token in vocabulary.tokens)


def log_probabilities(model: NextWords, histories: np.ndarray) -> Tensor:
    """Of every token as the next one (N, V), in nats; the columns that ``start`` was told must hold each token once."""
    return torch.log_softmax(model.scores(histories), dim=1)


class SubwordScore(PrefixScore):
    """See ``PrefixScore``."""

    def __init__(self, model: NextWords, pieces: list[str]) -> None:
        """Raises ``ModelError`` where the model is over other units than the recogniser's."""
        expected = unit_vocabulary(pieces)
        if model.vocabulary.hash != expected.hash:
            raise ModelError(
                f"the language model is over {len(model.vocabulary) - len(SPECIAL_TOKENS)} units with the vocabulary "
                f"hash {model.vocabulary.hash[:12]}, the recogniser's {len(pieces)} units have {expected.hash[:12]}; "
                "give a model whose vocabulary is this recogniser's units"
            )
        self._model = model
        special = len(SPECIAL_TOKENS)
        self._columns = np.array([*range(special, special + len(pieces)), *range(special)], dtype=np.int64)
        self._units, self._end = len(pieces), len(pieces) + END_ID

    def start(self, tree: SequenceTree, states: PredictorStates, model: "RNNT") -> None:
        """Begin with a tree that holds the root alone."""
        super().start(tree, states, model)
        self._history = NodeValues(np.int64)
        self._model.start(self._columns)

    def extend(self, first: int) -> None:
        """Score the nodes from ``first`` on."""
        super().extend(first)
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        self._history.set(first, self._model.extend(self._history[parents], units + len(SPECIAL_TOKENS)))

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        return log_probabilities(self._model, self._history[nodes])[:, : self._units].numpy()

    def finish(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        ends = log_probabilities(self._model, self._history[nodes])[:, self._end]
        return self._values[nodes] + ends.double().numpy()


def check_units(model: str, vocabulary: Vocabulary, units: Units) -> None:
    """Raise ``ModelError`` where a model is not over these units."""
    expected = unit_vocabulary(units.pieces)
    if vocabulary.hash != expected.hash:
        raise ModelError(
            f"the model {model!r} has the vocabulary {vocabulary.hash[:12]} and the recogniser's units are "
            f"{expected.hash[:12]}; give a model over the units of this recogniser"
        )


def encode_units(path: str, units: Units) -> EncodedText:
    """A text file as ids of units behind the special tokens, as ``unit_vocabulary`` numbers them.

    Raises ``CorpusError`` where no line has a word.
    """
    tokens: list[int] = []
    offsets, lines, empty = [0], [], 0
    for number, found in enumerate(units.encode_all(list(read_lines(path))), start=1):
        if not found:
            empty += 1
            continue
        tokens += [START_ID, *(unit + len(SPECIAL_TOKENS) for unit in found), END_ID]
        offsets.append(len(tokens))
        lines.append(number)
    if not lines:
        raise CorpusError(f"text {path!r} holds no word; a language model needs text")
    return EncodedText(
        tokens=np.array(tokens, dtype=np.int32),
        offsets=np.array(offsets, dtype=np.int64),
        lines=np.array(lines, dtype=np.int64),
        empty_lines=empty,
        marker_like=0,
        markers_are_targets=True,
    )
