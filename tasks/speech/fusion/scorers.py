"""Scorers that know every unit's score at once: words, the internal language model, language models over units.

A language model over units is a folder of kind ``transformer`` or ``ngram`` whose vocabulary is the recogniser's units,
in order. It needs no look-ahead. A model of other units would give meaningless scores, so it is refused.
"""

import numpy as np
import torch

from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError, ModelError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.language_models import NextWords, encode_sentences
from tasks.language_model.sequence_tree import SequenceTree
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, Vocabulary
from tasks.speech.recogniser.units import WORD_BEGIN, Units
from tasks.speech.search.scorer import PredictorStates, UnitScorer

_SPECIAL = len(SPECIAL_TOKENS)


class SpelledUnits:
    """Letters of each unit, and whether it begins a word; no unit spans two words."""

    def __init__(self, units: Units) -> None:
        self.letters = [str(units.decode([index])) for index in range(len(units.pieces))]
        self.has_letters = np.array([bool(letters) for letters in self.letters])
        marked = np.array([piece.startswith(WORD_BEGIN) for piece in units.pieces])
        self.begins = marked & (self.has_letters | np.array([piece == WORD_BEGIN for piece in units.pieces]))


class WordCounts(UnitScorer):
    """Number of words; a word begins with its first letter."""

    columns = np.dtype([("value", "f8"), ("inside", "?")])

    def __init__(self, units: SpelledUnits) -> None:
        self._units = units

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """1 for each unit that begins a word after each node, else 0 (N, V - 1)."""
        begins = self._units.begins | ~self.nodes["inside"][nodes][:, None]
        return (self._units.has_letters & begins).astype(np.float32)

    def extend(self, first: int) -> None:
        """Add the new nodes from ``first`` on."""
        super().extend(first)
        units = self.tree.unit[first:]
        inside = self.nodes["inside"][first : first + len(units)]  # so far that of the parents
        inside &= ~self._units.begins[units]
        inside |= self._units.has_letters[units]


class ZeroEncoder(UnitScorer):
    """Minus the score of the transducer's internal language model: predictor and joiner without a signal, over units
    only (Variani et al. 2020, section 4.2)."""

    @torch.inference_mode()
    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Minus the log-probability of each unit after each node (N, V - 1)."""
        self.states.extend()
        outputs = self.states.outputs(nodes)
        logits = self.states.join(torch.zeros_like(outputs), outputs)[:, : self.tree.units]
        return -torch.log_softmax(logits, dim=1).cpu().numpy()


class UnitModel(UnitScorer):
    """A language model over the recogniser's units."""

    columns = np.dtype([("value", "f8"), ("history", "i8")])

    def __init__(self, model: NextWords, pieces: list[str]) -> None:
        """Raises ``ModelError`` if the model's units are not the recogniser's."""
        if model.vocabulary.hash != unit_vocabulary(pieces).hash:
            raise ModelError(
                f"the language model is over {len(model.vocabulary) - _SPECIAL} tokens that are not the "
                f"{len(pieces)} units of the recogniser in their order; give a model over the units of this recogniser"
            )
        self._model = model
        self._columns = np.roll(np.arange(_SPECIAL + len(pieces)), -_SPECIAL)

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        super().start(tree, states)
        self._model.start(self._columns)

    def _log_probabilities(self, nodes: np.ndarray) -> torch.Tensor:
        return torch.log_softmax(self._model.scores(self.nodes["history"][nodes]), dim=1)

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each unit after each node (N, V - 1)."""
        return self._log_probabilities(nodes)[:, : self.tree.units].numpy()

    def extend(self, first: int) -> None:
        """Score the nodes from ``first`` on."""
        super().extend(first)
        units = self.tree.unit[first:]
        history = self.nodes["history"][first : first + len(units)]  # so far that of the parents
        history[:] = self._model.extend(history.copy(), units + _SPECIAL)

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        return super().end(nodes) + self._log_probabilities(nodes)[:, self.tree.units + END_ID].double().numpy()


def unit_vocabulary(pieces: list[str]) -> Vocabulary:
    """The vocabulary of a language model over units.

    A unit named like a special token, or like a unit of an earlier language, gets more brackets.
    """
    names = dict.fromkeys(SPECIAL_TOKENS)
    for piece in pieces:
        while piece in names:
            piece = f"<{piece}>"
        names[piece] = None
    return Vocabulary(tuple(names))


def encode_units(path: str, units: Units, vocabulary: Vocabulary) -> EncodedText:
    """The lines of a text file that have a word, as ids of ``unit_vocabulary``; ``CorpusError`` if none has."""
    every = (ids for ids in units.encode_all(list(read_lines(path))) if ids)
    sentences = [tuple(vocabulary.tokens[unit + _SPECIAL] for unit in ids) for ids in every]
    if not sentences:
        raise CorpusError(f"text {path!r} holds no word; a language model needs text")
    return encode_sentences(sentences, vocabulary)
