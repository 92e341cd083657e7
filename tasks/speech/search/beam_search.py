"""Beam search for the transducer, over many utterances at once.

The algorithm is that of ``torchaudio.models.RNNTBeamSearch``, which searches one utterance at a time. At each frame the
hypotheses of the beam emit blank, or units and then blank. They go on as long as the result beats the worst of the
``beam_width`` best that have emitted blank. The probabilities of equal unit sequences are added. Here each round of a
frame calls the joiner once, for all hypotheses of all utterances, and the predictor once, for all new unit sequences.
As in torchaudio, hypotheses are compared by score divided by the number of units plus 2, after each frame and at the
end. Scores are summed in float64, torchaudio's in float32, so near ties may be decided differently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.sequence_tree import ROOT, SequenceTree, padded
from tasks.language_model.transformer.processor_products import laid_out_layers
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.scorer import PredictorStates, Scorer

if TYPE_CHECKING:
    from torchaudio.models import RNNT

_BATCH = 512
"""Utterances of similar length that are searched at once; affects speed and memory only."""
_USUAL_UTTERANCES = 64
_SETTLED_BEAMS = 2
"""Multiple of the beam width that is settled before the beam is cut, since estimates err."""
_FRAMES_BETWEEN_SETTLING = 2
"""Fewer, larger batches for the language model."""
_ROUNDING = 1e-3
"""Margin in nats for the float32 sums that preselect candidates, so that none is missed."""
_BEAM = np.dtype([("node", np.int64), ("score", np.float64), ("estimated", np.bool_)], align=True)
"""A hypothesis: its unit sequence, the transducer's score, and whether the scorers' part is an estimate."""
Fusion = Mapping[str, tuple[Scorer, float]]
"""Scorers and their weights, by name."""


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


@torch.inference_mode()
def beam_search(
    model: "RNNT",
    blank: int,
    encoded: list[Tensor],
    settings: SearchSettings,
    fusion: Fusion | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each utterance, best first.

    ``model``: torchaudio's transducer in evaluation mode, whose last symbol is ``blank``. ``encoded``: its encoder's
    output for each utterance (frames, D). An utterance without a frame has only the empty hypothesis.
    """
    from tqdm import tqdm

    device = next(model.parameters()).device
    order = sorted(range(len(encoded)), key=lambda index: -len(encoded[index]))
    found: list[list[Hypothesis]] = [[] for _ in encoded]
    rows = _USUAL_UTTERANCES * settings.beam_width
    with (
        # The predictor's and joiner's weights, laid out for the fastest matrix products.
        laid_out_layers(model.predictor, rows),
        laid_out_layers(model.joiner, rows),
        tqdm(total=len(encoded), desc="decoding", unit="utterance", disable=None, leave=False) as bar,
    ):
        for begin in range(0, len(order), _BATCH):
            chosen = order[begin : begin + _BATCH]
            frames = [encoded[index].to(device=device, dtype=torch.float32) for index in chosen]
            batch = _Batch(model, blank, frames, settings, fusion or {})
            for index, hypotheses in zip(chosen, batch.search(), strict=True):
                found[index] = hypotheses
            bar.update(len(chosen))
    return found


class _Batch:
    """The search of a batch of utterances, the longest first."""

    def __init__(
        self, model: "RNNT", blank: int, frames: list[Tensor], settings: SearchSettings, fusion: Fusion
    ) -> None:
        self.blank, self.settings, self.fusion, self.scorers = blank, settings, fusion, list(fusion.values())
        self.lengths = np.array([len(utterance) for utterance in frames])
        self.frames = torch.nn.utils.rnn.pad_sequence(frames)  # (T, N, D)
        self.tree = SequenceTree(blank)
        self.states = PredictorStates(model, blank, self.tree)
        for scorer, _ in self.scorers:
            scorer.start(self.tree, self.states)
        self.beams = _no_hypotheses(len(frames), settings.beam_width)  # (N, K)
        self.beams["score"][:, 0] = 0.0

    def search(self) -> list[list[Hypothesis]]:
        for frame in range(int(self.lengths[0]) if len(self.lengths) else 0):
            active = int((self.lengths > frame).sum())
            done = self._emitted(self.frames[frame, :active], active)
            if (frame + 1) % _FRAMES_BETWEEN_SETTLING == 0 and done["estimated"].any():
                done = self._best(done, _SETTLED_BEAMS * self.settings.beam_width)
                for scorer, _ in self.scorers:
                    scorer.settle(done["node"][done["estimated"]])
                done["estimated"] = False
            done = self._best(done, self.settings.beam_width)
            self.beams[:active] = done
            for scorer, _ in self.scorers:
                scorer.retain(np.unique(done["node"][done["score"] > -np.inf]))
        return self._ended()

    def _emitted(self, encodings: Tensor, active: int) -> np.ndarray:
        """The hypotheses of the first ``active`` utterances that end one frame (N, W); ``encodings``: (N, D)."""
        utterance, column = np.nonzero(self.beams["score"][:active] > -np.inf)
        found, done = self.beams[utterance, column], _no_hypotheses(active, self.settings.beam_width)
        for emitted in range(self.settings.step_max_symbols + 1):
            log_probabilities = self._log_probabilities(encodings, utterance, found["node"])  # (M, V)
            ended = found.copy()
            ended["score"] += log_probabilities[:, self.blank]
            done = _with(done, utterance, ended)
            if emitted < self.settings.step_max_symbols:
                utterance, found = self._grown(done, utterance, found, log_probabilities)
                if not len(found):
                    break
        return done

    def _log_probabilities(self, encodings: Tensor, utterance: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Log-probabilities of all symbols (M, V) for hypotheses of these utterances."""
        rows = torch.from_numpy(padded(utterance)).to(encodings.device)
        joined = self.states.join(encodings.index_select(0, rows), self.states.outputs(padded(nodes)))
        return torch.log_softmax(joined[: len(nodes)], dim=1).cpu().numpy()

    def _grown(
        self, done: np.ndarray, utterance: np.ndarray, found: np.ndarray, log_probabilities: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The hypotheses extended by one unit that can still reach the beam, and their utterances."""
        width, nodes = self.settings.beam_width, found["node"]
        ended = done["score"] + self._added(done)
        worst = ended.shape[1] - width
        least = np.partition(ended, worst, axis=1)[:, worst]  # (N,): the worst of the best that have ended
        needed = (least[utterance] - found["score"] - self._added(found) - _ROUNDING).astype(np.float32)
        wanted = log_probabilities[:, : self.blank]
        for scorer, weight in self.scorers:
            wanted = wanted + np.float32(weight) * scorer.bounds(nodes)
        row, unit = np.nonzero(wanted > needed[:, None])
        if not len(row):
            return utterance[row], found[row]
        grown = found[row]
        grown["score"] += log_probabilities[row, unit]
        added, estimated = np.zeros(len(row)), np.zeros(len(row), dtype=bool)
        for scorer, weight in self.scorers:
            ahead, is_estimate = scorer.ahead(nodes[row], unit, found["estimated"][row])
            added += weight * ahead
            estimated |= is_estimate
        best = _best_of_each(utterance[row], grown["score"] + added, least, width)
        grown, row = grown[best], row[best]
        grown["node"], before = self.tree.children(nodes[row], unit[best])
        grown["estimated"] = estimated[best]
        self.states.extend()
        for scorer, _ in self.scorers:
            if self.tree.size > before:
                scorer.extend(before)
            scorer.settle(grown["node"][~grown["estimated"]])
        return utterance[row], grown

    def _best(self, beams: np.ndarray, width: int) -> np.ndarray:
        """The ``width`` best hypotheses of each utterance (N, W), unordered; all if there are fewer."""
        if beams.shape[1] <= width:
            return beams
        totals = (beams["score"] + self._added(beams)) / (self.tree.length[beams["node"]] + 2)
        return np.take_along_axis(beams, np.argpartition(-totals, width - 1, axis=1)[:, :width], axis=1)

    def _added(self, beams: np.ndarray) -> np.ndarray:
        """Weighted sum of the scorers for each hypothesis."""
        nodes, estimated = beams["node"].ravel(), beams["estimated"].ravel()
        added = (weight * scorer.values(nodes, estimated) for scorer, weight in self.scorers)
        return sum(added, np.zeros(len(nodes))).reshape(beams.shape)

    def _ended(self) -> list[list[Hypothesis]]:
        utterance, column = np.nonzero(self.beams["score"] > -np.inf)
        nodes, transducer = self.beams["node"][utterance, column], self.beams["score"][utterance, column]
        parts = {name: scorer.end(nodes) for name, (scorer, _) in self.fusion.items()}
        added = sum((weight * parts[name] for name, (_, weight) in self.fusion.items()), np.zeros(len(nodes)))
        totals = (transducer + added) / (self.tree.length[nodes] + 2)
        hypotheses: list[list[Hypothesis]] = [[] for _ in self.lengths]
        for index in np.lexsort((-totals, utterance)).tolist():
            of_utterance = hypotheses[utterance[index]]
            if len(of_utterance) < self.settings.nbest:
                units = self.tree.sequence(int(nodes[index]))
                found = {name: float(values[index]) for name, values in parts.items()}
                of_utterance.append(Hypothesis(units, float(totals[index]), float(transducer[index]), found))
        return hypotheses


def _no_hypotheses(*shape: int) -> np.ndarray:
    """Places for hypotheses; the score of an empty one is minus infinity."""
    empty = np.zeros(shape, dtype=_BEAM)
    empty["node"], empty["score"] = ROOT, -np.inf
    return empty


def _with(beams: np.ndarray, utterance: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The beams (N, W) with more hypotheses (M,), grouped by utterance; equal hypotheses are merged."""
    taken = beams["score"] > -np.inf  # (N, W)
    same = (beams["node"][utterance] == found["node"][:, None]) & taken[utterance]
    there = same.any(axis=1)
    place = utterance[there], same[there].argmax(axis=1)
    beams["score"][place] = np.logaddexp(beams["score"][place], found["score"][there])
    utterance, found = utterance[~there], found[~there]
    if len(found):
        column = taken.sum(axis=1)[utterance] + _rank_within(utterance)
        if (more := int(column.max()) + 1 - beams.shape[1]) > 0:
            beams = np.concatenate([beams, _no_hypotheses(len(beams), more)], axis=1)
        beams[utterance, column] = found
    return beams


def _rank_within(groups: np.ndarray) -> np.ndarray:
    """Position of each entry within its group (M,), from 0; the entries of a group are contiguous."""
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    return np.arange(len(groups)) - np.repeat(begins, np.diff(np.append(begins, len(groups))))


def _best_of_each(owner: np.ndarray, scores: np.ndarray, least: np.ndarray, width: int) -> np.ndarray:
    """Indices of the ``width`` best candidates of each owner that are better than its ``least``, grouped by owner."""
    inside = np.flatnonzero(scores > least[owner])
    order = inside[np.lexsort((-scores[inside], owner[inside]))]
    return order[_rank_within(owner[order]) < width] if len(order) else order
