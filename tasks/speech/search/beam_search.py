"""Beam search for the transducer, over many utterances at once.

The algorithm is that of ``torchaudio.models.RNNTBeamSearch``, which searches one utterance at a time. At each frame the
hypotheses of the beam emit blank, or units and then blank. They go on as long as the result beats the worst of the
``beam_width`` best that have emitted blank. The probabilities of equal unit sequences are added. Here each round of a
frame calls the joiner once, for all hypotheses of all utterances, and the predictor once, for all new unit sequences.
As in torchaudio, hypotheses are compared by score divided by the number of units plus 2, after each frame and at the
end. Scores are summed in float64, torchaudio's in float32, so near ties may be decided differently.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.sequence_tree import ROOT, SequenceTree, padded
from tasks.language_model.transformer.processor_products import laid_out_layers
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.predictor_states import PredictorStates
from tasks.speech.search.scorer import WeightedScorers

if TYPE_CHECKING:
    from torchaudio.models import RNNT

    from tasks.speech.recogniser.recogniser import Recogniser


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A unit sequence with the parts of its score; log-probabilities are in nats."""

    units: tuple[int, ...]
    """Ids of the recogniser's units, without blanks."""
    score: float
    """Score for ranking: the weighted sum of the parts, divided by the number of units plus 2."""
    transducer: float
    """Log-probability of the units under the transducer, over all alignments in the beam."""
    parts: dict[str, float]
    """Score of the whole sentence by each scorer, by its name."""


class EndedHypotheses:
    """The hypotheses of each utterance that have emitted blank at a frame, as (N, W)."""

    def __init__(self, utterances: int, width: int) -> None:
        self.nodes = np.full((utterances, width), ROOT)
        self.scores = np.full((utterances, width), -np.inf)
        self.estimated = np.zeros((utterances, width), dtype=bool)
        self._counts = np.zeros(utterances, dtype=np.int64)

    def add(self, utterance: np.ndarray, nodes: np.ndarray, estimated: np.ndarray, scores: np.ndarray) -> None:
        """Add hypotheses (M,), grouped by utterance; equal hypotheses are merged."""
        taken = np.arange(self.nodes.shape[1]) < self._counts[utterance][:, None]  # (M, W)
        same = (self.nodes[utterance] == nodes[:, None]) & taken
        there = same.any(axis=1)
        if there.any():
            place = utterance[there], same[there].argmax(axis=1)
            self.scores[place] = np.logaddexp(self.scores[place], scores[there])
            utterance, nodes, estimated, scores = (part[~there] for part in (utterance, nodes, estimated, scores))
        if not len(nodes):
            return
        column = self._counts[utterance] + _rank_within(utterance)
        if (more := int(column.max()) + 1 - self.nodes.shape[1]) > 0:
            rows = len(self.nodes)
            self.nodes = np.concatenate([self.nodes, np.full((rows, more), ROOT)], axis=1)
            self.scores = np.concatenate([self.scores, np.full((rows, more), -np.inf)], axis=1)
            self.estimated = np.concatenate([self.estimated, np.zeros((rows, more), dtype=bool)], axis=1)
        self.nodes[utterance, column] = nodes
        self.scores[utterance, column] = scores
        self.estimated[utterance, column] = estimated
        self._counts += np.bincount(utterance, minlength=len(self._counts))

    def take(self, columns: np.ndarray) -> None:
        """Retain these columns (N, W) of each row."""
        for name in ("nodes", "scores", "estimated"):
            setattr(self, name, np.take_along_axis(getattr(self, name), columns, axis=1))


def _rank_within(groups: np.ndarray) -> np.ndarray:
    """Position of each entry within its group (M,), from 0; the entries of a group are contiguous."""
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    return np.arange(len(groups)) - np.repeat(begins, np.diff(np.append(begins, len(groups))))


def smallest_of_best(scores: np.ndarray, width: int) -> np.ndarray:
    """The ``width``-th best score of each row (N,); minus infinity if there are fewer."""
    if scores.shape[1] < width:
        return np.full(len(scores), -np.inf)
    return np.partition(scores, scores.shape[1] - width, axis=1)[:, scores.shape[1] - width]


def best_of_each(owner: np.ndarray, scores: np.ndarray, least: np.ndarray, width: int) -> np.ndarray:
    """Indices of the ``width`` best candidates of each owner that are better than its ``least``, grouped by owner."""
    inside = np.flatnonzero(scores > least[owner])
    order = inside[np.lexsort((-scores[inside], owner[inside]))]
    return order[_rank_within(owner[order]) < width] if len(order) else order


def best_columns(scores: np.ndarray, width: int) -> np.ndarray:
    """Columns of the ``width`` best scores of each row (N, W), unordered; all if there are fewer."""
    if scores.shape[1] <= width:
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return np.argpartition(-scores, width - 1, axis=1)[:, :width]


_USUAL_UTTERANCES = 64
_SETTLED_BEAMS = 2
"""Multiple of the beam width that is settled before the beam is cut, since estimates err."""
_FRAMES_BETWEEN_SETTLING = 2
"""Fewer, larger batches for the language model."""
_ROUNDING = 1e-3
"""Margin in nats for the float32 sums that preselect candidates, so that none is missed."""


@torch.inference_mode()
def beam_search(
    recogniser_model: "RNNT",
    blank: int,
    encoded: list[Tensor],
    settings: SearchSettings,
    fusion: WeightedScorers | None = None,
    bias: np.ndarray | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each utterance, best first.

    ``recogniser_model``: a ``torchaudio.models.RNNT`` in evaluation mode, whose last symbol is ``blank``. ``encoded``:
    its encoder's output for each utterance (frames, D). ``bias`` (V,) is added to the scores of its symbols. An
    utterance without a frame has only the empty hypothesis.
    """
    device = next(recogniser_model.parameters()).device
    order = sorted(range(len(encoded)), key=lambda index: -len(encoded[index]))
    found: list[list[Hypothesis]] = [[] for _ in encoded]
    from tqdm import tqdm

    with (
        _laid_out(recogniser_model, settings),
        tqdm(total=len(encoded), desc="decoding", unit="utterance", disable=None, leave=False) as bar,
    ):
        for begin in range(0, len(order), settings.batch_utterances):
            chosen = order[begin : begin + settings.batch_utterances]
            frames = [encoded[index].to(device=device, dtype=torch.float32) for index in chosen]
            batch = _Batch(recogniser_model, blank, frames, settings, fusion or WeightedScorers(), bias)
            for index, hypotheses in zip(chosen, batch.search(), strict=True):
                found[index] = hypotheses
            bar.update(len(chosen))
    return found


def recognise(
    recogniser: "Recogniser", encoded: list[Tensor], settings: SearchSettings, fusion: WeightedScorers | None = None
) -> list[list[Hypothesis]]:
    """``beam_search`` with the recogniser's units and the settings.

    Raises ``SpeechError`` if the settings bias a language that the recogniser does not have.
    """
    units = recogniser.units
    return beam_search(recogniser.model, units.blank, encoded, settings, fusion, units.bias(settings.language_bias))


@contextmanager
def _laid_out(model: "RNNT", settings: SearchSettings) -> Iterator[None]:
    """A context in which the predictor's and joiner's weights are laid out for the fastest matrix products."""
    rows = min(settings.batch_utterances, _USUAL_UTTERANCES) * settings.beam_width
    with ExitStack() as stack:
        for name, part in model.named_children():
            if name != "transcriber":
                stack.enter_context(laid_out_layers(part, rows))
        yield


class _Batch:
    """The search of a batch of utterances, the longest first."""

    def __init__(
        self,
        model: "RNNT",
        blank: int,
        frames: list[Tensor],
        settings: SearchSettings,
        fusion: WeightedScorers,
        bias: np.ndarray | None,
    ) -> None:
        self.blank, self.settings, self.fusion = blank, settings, fusion
        self.bias = None if bias is None else torch.from_numpy(bias).to(frames[0].device)
        self.lengths = np.array([len(utterance) for utterance in frames])
        self.frames = torch.nn.utils.rnn.pad_sequence(frames)  # (T, N, D)
        self.tree = SequenceTree(blank)
        self.states = PredictorStates(model, blank, self.tree)
        fusion.start(self.tree, self.states)
        # Beams as (N, K): nodes, and the transducer's scores; minus infinity for no hypothesis.
        self.nodes = np.full((len(frames), settings.beam_width), ROOT)
        self.scores = np.full(self.nodes.shape, -np.inf)
        self.scores[:, 0] = 0.0
        self.estimated = np.zeros(self.nodes.shape, dtype=bool)

    def search(self) -> list[list[Hypothesis]]:
        for frame in range(int(self.lengths[0]) if len(self.lengths) else 0):
            active = int((self.lengths > frame).sum())
            done = self._emitted(self.frames[frame, :active], active)
            self._cut(done, settles=(frame + 1) % _FRAMES_BETWEEN_SETTLING == 0)
            self.nodes[:active], self.scores[:active], self.estimated[:active] = done.nodes, done.scores, done.estimated
            self.fusion.retain(np.unique(done.nodes[done.scores > -np.inf]))
        return self._ended()

    def _emitted(self, encodings: Tensor, active: int) -> EndedHypotheses:
        """The hypotheses of the first ``active`` utterances that end one frame, whose ``encodings`` are (N, D)."""
        utterance, column = np.nonzero(self.scores[:active] > -np.inf)
        nodes, scores, estimated = (each[utterance, column] for each in (self.nodes, self.scores, self.estimated))
        done = EndedHypotheses(active, self.settings.beam_width)
        for emitted in range(self.settings.step_max_symbols + 1):
            log_probabilities = self._log_probabilities(encodings, utterance, nodes)  # (M, V)
            done.add(utterance, nodes, estimated, scores + log_probabilities[:, self.blank])
            if emitted == self.settings.step_max_symbols:
                break
            utterance, nodes, estimated, scores = self._grown(
                done, utterance, nodes, estimated, scores, log_probabilities
            )
            if not len(nodes):
                break
            self.states.ensure(nodes)
        return done

    def _log_probabilities(self, encodings: Tensor, utterance: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Log-probabilities of all symbols (M, V) for hypotheses of these utterances."""
        rows = torch.from_numpy(padded(utterance)).to(encodings.device)
        joined = self.states.join(encodings.index_select(0, rows), self.states.outputs(padded(nodes)))
        logits = joined[: len(nodes)]
        if self.bias is not None:
            logits = logits + self.bias
        return torch.log_softmax(logits, dim=1).cpu().numpy()

    def _grown(
        self,
        done: EndedHypotheses,
        utterance: np.ndarray,
        nodes: np.ndarray,
        estimated: np.ndarray,
        scores: np.ndarray,
        log_probabilities: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The hypotheses extended by one unit that can still reach the beam: utterances, nodes, whether the added score
        is an estimate, scores."""
        width = self.settings.beam_width
        least = smallest_of_best(done.scores + self._added(done), width)  # (N,)
        added = self.fusion.values(nodes, estimated)
        needed = (least[utterance] - scores - added - _ROUNDING).astype(np.float32)
        wanted = log_probabilities[:, : self.blank] + self.fusion.bounds(nodes)
        row, unit = np.nonzero(wanted > needed[:, None])
        if not len(row):
            return row, row, estimated[:0], scores[:0]
        owner, grown = utterance[row], scores[row] + log_probabilities[row, unit]
        added, estimated = self.fusion.ahead(nodes[row], unit, estimated[row])
        best = best_of_each(owner, grown + added, least, width)
        found, before = self.tree.children(nodes[row[best]], unit[best])
        if self.tree.size > before:
            self.fusion.extend(before)
        estimated = estimated[best]
        self.fusion.settle(found[~estimated])
        return owner[best], found, estimated, grown[best]

    def _cut(self, done: EndedHypotheses, *, settles: bool) -> None:
        """Retain the best hypotheses that have emitted blank: the beams of the next frame."""
        width = self.settings.beam_width
        if settles and done.estimated.any():
            done.take(best_columns(self._totals(done), _SETTLED_BEAMS * width))
            self.fusion.settle(done.nodes[done.estimated])
            done.estimated[:] = False
        done.take(best_columns(self._totals(done), width))

    def _totals(self, done: EndedHypotheses) -> np.ndarray:
        return (done.scores + self._added(done)) / (self.tree.length[done.nodes] + 2)

    def _added(self, done: EndedHypotheses) -> np.ndarray:
        return self.fusion.values(done.nodes.ravel(), done.estimated.ravel()).reshape(done.nodes.shape)

    def _ended(self) -> list[list[Hypothesis]]:
        places = np.nonzero(self.scores > -np.inf)
        nodes, transducer = self.nodes[places], self.scores[places]
        added, parts = self.fusion.end(nodes)
        totals = (transducer + added) / (self.tree.length[nodes] + 2)
        hypotheses: list[list[Hypothesis]] = [[] for _ in self.lengths]
        for index in np.lexsort((-totals, places[0])).tolist():
            of_utterance = hypotheses[places[0][index]]
            if len(of_utterance) < self.settings.nbest:
                units = self.tree.sequence(int(nodes[index]))
                found = {name: float(values[index]) for name, values in parts.items()}
                of_utterance.append(Hypothesis(units, float(totals[index]), float(transducer[index]), found))
        return hypotheses
