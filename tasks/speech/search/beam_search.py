"""Beam search for the transducer, over many utterances at once.

The algorithm is that of ``torchaudio.models.RNNTBeamSearch``, which goes through one utterance at a time: at each frame
the hypotheses of the beam emit blank, or units and then blank, as long as what they emit is better than the worst of
the ``beam_width`` best that have emitted blank; equal unit sequences are added up. Here each round of a frame is one
call of the joiner for all hypotheses of all utterances, one call of the predictor for the unit sequences that were
never seen before, and a few array operations. Scores are added up in float64 where torchaudio has float32, so of two
hypotheses whose scores differ by rounding the other may win.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.sequence_tree import ROOT, SequenceTree, padded
from tasks.language_model.transformer.processor_products import laid_out_layers
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.predictor_states import Hypothesis, PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT

    from tasks.speech.fusion.shallow_fusion import ShallowFusion
    from tasks.speech.recogniser.recogniser import Recogniser


class EndedHypotheses:
    """The hypotheses of each utterance that have emitted blank at a frame, as (N, W)."""

    def __init__(self, utterances: int, width: int) -> None:
        self.nodes = np.full((utterances, width), ROOT)
        self.scores = np.full((utterances, width), -np.inf)
        self.estimated = np.zeros((utterances, width), dtype=bool)
        self._counts = np.zeros(utterances, dtype=np.int64)

    def add(self, utterance: np.ndarray, nodes: np.ndarray, estimated: np.ndarray, scores: np.ndarray) -> None:
        """Add hypotheses (M,), those of one utterance side by side; equal ones become one."""
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
        """Keep these columns (N, W) of each row."""
        for name in ("nodes", "scores", "estimated"):
            setattr(self, name, np.take_along_axis(getattr(self, name), columns, axis=1))


def _rank_within(groups: np.ndarray) -> np.ndarray:
    """Place of each entry among the entries of its group (M,), from 0; the entries of a group stand side by side."""
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    return np.arange(len(groups)) - np.repeat(begins, np.diff(np.append(begins, len(groups))))


def smallest_of_best(scores: np.ndarray, width: int) -> np.ndarray:
    """The ``width``-th best score of each row (N,); minus infinity where there are fewer."""
    if scores.shape[1] < width:
        return np.full(len(scores), -np.inf)
    return np.partition(scores, scores.shape[1] - width, axis=1)[:, scores.shape[1] - width]


def best_of_each(owner: np.ndarray, scores: np.ndarray, least: np.ndarray, width: int) -> np.ndarray:
    """Indices of the ``width`` best candidates of each owner that are better than its ``least``, side by side."""
    inside = np.flatnonzero(scores > least[owner])
    order = inside[np.lexsort((-scores[inside], owner[inside]))]
    return order[_rank_within(owner[order]) < width] if len(order) else order


def best_columns(scores: np.ndarray, width: int) -> np.ndarray:
    """Columns of the ``width`` best scores of each row (N, W), in no order; all where there are fewer."""
    if scores.shape[1] <= width:
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return np.argpartition(-scores, width - 1, axis=1)[:, :width]


_USUAL_UTTERANCES = 64
_SETTLED_BEAMS = 2
"""So many times the beam's width are settled before the best are kept: estimates err."""
_FRAMES_BETWEEN_SETTLING = 2
"""A language model that is asked rarely answers for many hypotheses at once."""
_ROUNDING = 1e-3
"""Candidates are first taken by float32 sums; by so much more, in nats, that no one is missed."""


@torch.inference_mode()
def beam_search(
    recogniser_model: "RNNT",
    blank: int,
    encoded: list[Tensor],
    settings: SearchSettings,
    fusion: "ShallowFusion | None" = None,
    bias: np.ndarray | None = None,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each utterance, the best one first.

    ``recogniser_model`` is a ``torchaudio.models.RNNT`` in evaluation mode, ``encoded`` what its encoder makes of each
    utterance (frames, D); blank is its last symbol. ``bias`` (V,) is added to the scores of its symbols. An
    utterance without a frame has the empty hypothesis alone.
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
            batch = _Batch(recogniser_model, blank, frames, settings, fusion, bias)
            for index, hypotheses in zip(chosen, batch.search(), strict=True):
                found[index] = hypotheses
            bar.update(len(chosen))
    return found


def recognise(
    recogniser: "Recogniser", encoded: list[Tensor], settings: SearchSettings, fusion: "ShallowFusion | None" = None
) -> list[list[Hypothesis]]:
    """``beam_search`` with all that the settings say of a recogniser's units.

    Raises ``SpeechError`` where they bias a language that it does not have.
    """
    units = recogniser.units
    return beam_search(recogniser.model, units.blank, encoded, settings, fusion, units.bias(settings.language_bias))


@contextmanager
def _laid_out(model: "RNNT", settings: SearchSettings) -> Iterator[None]:
    """Have the predictor and the joiner multiply at the processor's full speed meanwhile."""
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
        fusion: "ShallowFusion | None",
        bias: np.ndarray | None,
    ) -> None:
        self.model, self.blank, self.settings, self.fusion = model, blank, settings, fusion
        self.bias = None if bias is None else torch.from_numpy(bias).to(frames[0].device)
        self.lengths = np.array([len(utterance) for utterance in frames])
        self.frames = torch.nn.utils.rnn.pad_sequence(frames)  # (T, N, D)
        self.tree = SequenceTree(blank)
        self.states = PredictorStates(model, blank, self.tree)
        if fusion is not None:
            fusion.start(self.tree, self.states, model)
        # Beams as (N, K): nodes, and the transducer's scores; minus infinity stands for no hypothesis.
        self.nodes = np.full((len(frames), settings.beam_width), ROOT)
        self.scores = np.full(self.nodes.shape, -np.inf)
        self.scores[:, 0] = 0.0
        self.estimated = np.zeros(self.nodes.shape, dtype=bool)
        self._frame = 0

    def search(self) -> list[list[Hypothesis]]:
        for frame in range(int(self.lengths[0]) if len(self.lengths) else 0):
            active = int((self.lengths > frame).sum())
            self._step(self.frames[frame, :active], active)
            if self.fusion is not None:
                self.fusion.retain(np.unique(self.nodes[:active][self.scores[:active] > -np.inf]))
        return self._finish()

    def _step(self, encodings: Tensor, active: int) -> None:
        """One frame of the first ``active`` utterances, whose ``encodings`` are (N, D)."""
        utterance, column = np.nonzero(self.scores[:active] > -np.inf)
        nodes = self.nodes[utterance, column]
        scores = self.scores[utterance, column]
        estimated = self.estimated[utterance, column]
        self._frame += 1
        done = EndedHypotheses(active, self.settings.beam_width)
        for emitted in range(self.settings.step_max_symbols + 1):
            log_probabilities = self._joined(encodings, utterance, nodes)  # (M, V)
            done.add(utterance, nodes, estimated, scores + log_probabilities[:, self.blank])
            if emitted == self.settings.step_max_symbols:
                break
            utterance, nodes, estimated, scores = self._emit(
                done, utterance, nodes, estimated, scores, log_probabilities
            )
            if not len(nodes):
                break
            self.states.ensure(nodes)
        self._keep_best(done, active)

    def _keep_best(self, done: EndedHypotheses, active: int) -> None:
        """The best of those that have emitted blank are the beams of the next frame."""
        width = self.settings.beam_width
        totals = self._totals(done)
        if self.fusion is not None and self._frame % _FRAMES_BETWEEN_SETTLING == 0 and done.estimated.any():
            done.take(best_columns(totals, _SETTLED_BEAMS * width))
            self.fusion.settle(np.unique(done.nodes[done.estimated]))
            done.estimated[:] = False
            totals = self._totals(done)
        done.take(best_columns(totals, width))
        self.nodes[:active], self.scores[:active], self.estimated[:active] = done.nodes, done.scores, done.estimated

    def _totals(self, done: EndedHypotheses) -> np.ndarray:
        totals = done.scores + self._added(done.nodes, done.estimated)
        return totals / (self.tree.length[done.nodes] + 2) if self.settings.length_normalisation == "always" else totals

    def _added(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray | float:
        return 0.0 if self.fusion is None else self.fusion.added(nodes.ravel(), estimated.ravel()).reshape(nodes.shape)

    def _joined(self, encodings: Tensor, utterance: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Log-probabilities of all symbols (M, V) for hypotheses of these utterances."""
        rows = torch.from_numpy(padded(utterance)).to(encodings.device)
        ones = torch.ones_like(rows)
        joined, _, _ = self.model.join(
            encodings.index_select(0, rows)[:, None], ones, self.states.outputs(padded(nodes))[:, None], ones
        )
        logits = joined[: len(nodes), 0, 0]
        if self.settings.temperature != 1:
            logits = logits / self.settings.temperature
        if self.bias is not None:
            logits = logits + self.bias
        return torch.log_softmax(logits, dim=1).cpu().numpy()

    def _emit(
        self,
        done: EndedHypotheses,
        utterance: np.ndarray,
        nodes: np.ndarray,
        estimated: np.ndarray,
        scores: np.ndarray,
        log_probabilities: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The hypotheses that one unit more makes, where they can still reach the beam: utterances, nodes, whether
        what is added to them is an estimate, scores."""
        width = self.settings.beam_width
        least = smallest_of_best(done.scores + self._added(done.nodes, done.estimated), width)  # (N,)
        needed = (least[utterance] - scores - self._added(nodes, estimated) - _ROUNDING).astype(np.float32)
        wanted = log_probabilities[:, : self.blank]
        if self.fusion is not None:
            wanted = wanted + self.fusion.most(nodes)
        row, unit = np.nonzero(wanted > needed[:, None])
        if not len(row):
            return row, row, estimated[:0], scores[:0]
        owner = utterance[row]
        grown = scores[row] + log_probabilities[row, unit]
        totals, estimated = grown, estimated[row]
        if self.fusion is not None:
            added, estimated = self.fusion.ahead(nodes[row], unit, estimated)
            totals = grown + added
        kept = best_of_each(owner, totals, least, width)
        estimated = estimated[kept]
        found = self._children(nodes[row[kept]], unit[kept])
        if self.fusion is not None:
            self.fusion.keep(kept, found)
        return owner[kept], found, estimated, grown[kept]

    def _children(self, parents: np.ndarray, units: np.ndarray) -> np.ndarray:
        found, before = self.tree.children(parents, units)
        if self.fusion is not None and self.tree.size > before:
            self.fusion.extend(before)
        return found

    def _finish(self) -> list[list[Hypothesis]]:
        places = np.nonzero(self.scores > -np.inf)
        nodes, transducer = self.nodes[places], self.scores[places]
        totals = transducer
        parts: list[dict[str, Any]] = [{} for _ in nodes]
        if self.fusion is not None:
            added, parts = self.fusion.finish(nodes)
            totals = transducer + added
        if self.settings.length_normalisation != "never":
            totals = totals / (self.tree.length[nodes] + 2)
        hypotheses: list[list[Hypothesis]] = [[] for _ in self.lengths]
        for index in np.lexsort((-totals, places[0])).tolist():
            of_utterance = hypotheses[places[0][index]]
            if len(of_utterance) < self.settings.nbest:
                units = self.tree.sequence(int(nodes[index]))
                found = Hypothesis(units, float(totals[index]), float(transducer[index]), **parts[index])
                of_utterance.append(found)
        return hypotheses
