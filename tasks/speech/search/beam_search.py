"""Beam search for the transducer, over many utterances at once.

The algorithm is that of ``torchaudio.models.RNNTBeamSearch``, which searches one utterance at a time. At each frame the
hypotheses of the beam emit blank, or units and then blank. They go on as long as the result beats the worst of the
``beam_width`` best that have emitted blank. The probabilities of equal unit sequences are added. Here each round of a
frame calls the joiner once, for all hypotheses of all utterances, and the predictor once, for all new unit sequences.
As in torchaudio, hypotheses are compared by score divided by the number of units plus 2, after each frame and at the
end. Scores are summed in float64, torchaudio's in float32, so near ties may be decided differently.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.sequence_tree import SequenceTree, padded
from tasks.language_model.transformer.processor_products import laid_out_layers
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.predictor_states import PredictorStates
from tasks.speech.search.scorer import Scorer

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


_BEAM = np.dtype(
    [("utterance", np.int64), ("node", np.int64), ("score", np.float64), ("estimated", np.bool_)], align=True
)
"""A hypothesis of an utterance: node of its units, the transducer's score, whether the scorers' part is an estimate."""


def _begins(groups: np.ndarray) -> np.ndarray:
    """The first place of each group in sorted numbers from 0 on (M,)."""
    return np.flatnonzero(np.concatenate([[-1], groups[:-1]])[: len(groups)] != groups)


def merged(hypotheses: np.ndarray) -> np.ndarray:
    """Hypotheses (M,), at least one, by utterance; the probabilities of equal ones are added."""
    keys = hypotheses["utterance"] * (int(hypotheses["node"].max()) + 1) + hypotheses["node"]
    order = np.argsort(keys, kind="stable")
    begins = _begins(keys[order])
    found = hypotheses[order[begins]]
    found["score"] = np.logaddexp.reduceat(hypotheses["score"][order], begins)
    return found


def ranked(utterance: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order (M,) of hypotheses by utterance, best first, and the rank of each within its utterance, from 0."""
    order = np.lexsort((-totals, utterance))
    begins = _begins(utterance[order])
    return order, np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))


_USUAL_UTTERANCES = 64
_SETTLED_BEAMS = 2
"""Multiple of the beam width that is settled before the beam is cut, since estimates err."""
_FRAMES_BETWEEN_SETTLING = 2
"""Fewer, larger batches for the language model."""
_ROUNDING = 1e-3
"""Margin in nats for the float32 sums that preselect candidates, so that none is missed."""


Fusion = Mapping[str, tuple[Scorer, float]]
"""Scorers and their weights, by name."""


@torch.inference_mode()
def beam_search(
    recogniser_model: "RNNT",
    blank: int,
    encoded: list[Tensor],
    settings: SearchSettings,
    fusion: Fusion | None = None,
    bias: np.ndarray | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each utterance, best first.

    ``recogniser_model``: a ``torchaudio.models.RNNT`` in evaluation mode, whose last symbol is ``blank``. ``encoded``:
    its encoder's output for each utterance (frames, D). ``bias`` (V,) is added to the scores of its symbols. An
    utterance without a frame has only the empty hypothesis.
    """
    from tqdm import tqdm

    device = next(recogniser_model.parameters()).device
    order = sorted(range(len(encoded)), key=lambda index: -len(encoded[index]))
    found: list[list[Hypothesis]] = [[] for _ in encoded]
    with (
        _laid_out(recogniser_model, settings),
        tqdm(total=len(encoded), desc="decoding", unit="utterance", disable=None, leave=False) as bar,
    ):
        for begin in range(0, len(order), settings.batch_utterances):
            chosen = order[begin : begin + settings.batch_utterances]
            frames = [encoded[index].to(device=device, dtype=torch.float32) for index in chosen]
            batch = _Batch(recogniser_model, blank, frames, settings, fusion or {}, bias)
            for index, hypotheses in zip(chosen, batch.search(), strict=True):
                found[index] = hypotheses
            bar.update(len(chosen))
    return found


def recognise(
    recogniser: "Recogniser", encoded: list[Tensor], settings: SearchSettings, fusion: Fusion | None = None
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
        fusion: Fusion,
        bias: np.ndarray | None,
    ) -> None:
        self.blank, self.settings, self.fusion, self.scorers = blank, settings, fusion, list(fusion.values())
        self.bias = None if bias is None else torch.from_numpy(bias).to(frames[0].device)
        self.lengths = np.array([len(utterance) for utterance in frames])
        self.frames = torch.nn.utils.rnn.pad_sequence(frames)  # (T, N, D)
        self.tree = SequenceTree(blank)
        self.states = PredictorStates(model, blank, self.tree)
        for scorer, _ in self.scorers:
            scorer.start(self.tree, self.states)
        self.beams = np.zeros(len(frames), dtype=_BEAM)  # one for each utterance: its node is the root
        self.beams["utterance"] = np.arange(len(frames))

    def search(self) -> list[list[Hypothesis]]:
        for frame in range(int(self.lengths[0]) if len(self.lengths) else 0):
            active = self.lengths[self.beams["utterance"]] > frame
            done = self._emitted(self.frames[frame], self.beams[active])
            done = self._cut(done, settles=(frame + 1) % _FRAMES_BETWEEN_SETTLING == 0)
            self.beams = np.concatenate([done, self.beams[~active]])
            for scorer, _ in self.scorers:
                scorer.retain(np.unique(done["node"]))
        return self._ended()

    def _emitted(self, encodings: Tensor, found: np.ndarray) -> np.ndarray:
        """The hypotheses that have emitted blank at the end of one frame, whose ``encodings`` are (N, D)."""
        done = found[:0]
        for emitted in range(self.settings.step_max_symbols + 1):
            log_probabilities = self._log_probabilities(encodings, found["utterance"], found["node"])  # (M, V)
            ended = found.copy()
            ended["score"] += log_probabilities[:, self.blank]
            done = merged(np.concatenate([done, ended]))
            if emitted < self.settings.step_max_symbols:
                found = self._grown(done, found, log_probabilities)
            if not len(found):
                break
        return done

    def _log_probabilities(self, encodings: Tensor, utterance: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Log-probabilities of all symbols (M, V) for hypotheses of these utterances."""
        rows = torch.from_numpy(padded(utterance)).to(encodings.device)
        joined = self.states.join(encodings.index_select(0, rows), self.states.outputs(padded(nodes)))
        logits = joined[: len(nodes)]
        if self.bias is not None:
            logits = logits + self.bias
        return torch.log_softmax(logits, dim=1).cpu().numpy()

    def _grown(self, done: np.ndarray, found: np.ndarray, log_probabilities: np.ndarray) -> np.ndarray:
        """The hypotheses extended by one unit that can still reach the beam."""
        width, nodes = self.settings.beam_width, found["node"]
        totals = done["score"] + self._added(done)
        order, ranks = ranked(done["utterance"], totals)
        worst = order[ranks == width - 1]
        least = np.full(len(self.lengths), -np.inf)
        least[done["utterance"][worst]] = totals[worst]
        needed = (least[found["utterance"]] - found["score"] - self._added(found) - _ROUNDING).astype(np.float32)
        wanted = log_probabilities[:, : self.blank]
        for scorer, weight in self.scorers:
            wanted = wanted + np.float32(weight) * scorer.bounds(nodes)
        row, unit = np.nonzero(wanted > needed[:, None])
        if not len(row):
            return found[:0]
        utterance, score = found["utterance"][row], found["score"][row] + log_probabilities[row, unit]
        totals, estimated = score.copy(), np.zeros(len(row), dtype=bool)
        for scorer, weight in self.scorers:
            ahead, is_estimate = scorer.ahead(nodes[row], unit, found["estimated"][row])
            totals += weight * ahead
            estimated |= is_estimate
        better = np.flatnonzero(totals > least[utterance])
        order, ranks = ranked(utterance[better], totals[better])
        best = better[order[ranks < width]]
        grown = found[row[best]]
        grown["score"], grown["estimated"] = score[best], estimated[best]
        grown["node"], before = self.tree.children(nodes[row[best]], unit[best])
        self.states.extend()
        for scorer, _ in self.scorers:
            if self.tree.size > before:
                scorer.extend(before)
            scorer.settle(grown["node"][~grown["estimated"]])
        return grown

    def _cut(self, done: np.ndarray, *, settles: bool) -> np.ndarray:
        """The best hypotheses that have emitted blank: the beams of the next frame."""
        width = self.settings.beam_width
        if settles and done["estimated"].any():
            order, ranks = ranked(done["utterance"], self._totals(done))
            done = done[order[ranks < _SETTLED_BEAMS * width]]
            for scorer, _ in self.scorers:
                scorer.settle(done["node"][done["estimated"]])
            done["estimated"] = False
        order, ranks = ranked(done["utterance"], self._totals(done))
        return done[order[ranks < width]]

    def _totals(self, beams: np.ndarray) -> np.ndarray:
        return (beams["score"] + self._added(beams)) / (self.tree.length[beams["node"]] + 2)

    def _added(self, beams: np.ndarray) -> np.ndarray:
        """Weighted sum of the scorers for each hypothesis (M,)."""
        added = (weight * scorer.values(beams["node"], beams["estimated"]) for scorer, weight in self.scorers)
        return sum(added, np.zeros(len(beams)))

    def _ended(self) -> list[list[Hypothesis]]:
        nodes, transducer = self.beams["node"], self.beams["score"]
        parts = {name: scorer.end(nodes) for name, (scorer, _) in self.fusion.items()}
        added = sum((weight * parts[name] for name, (_, weight) in self.fusion.items()), np.zeros(len(nodes)))
        totals = (transducer + added) / (self.tree.length[nodes] + 2)
        hypotheses: list[list[Hypothesis]] = [[] for _ in self.lengths]
        order, ranks = ranked(self.beams["utterance"], totals)
        for index in order[ranks < self.settings.nbest].tolist():
            units = self.tree.sequence(int(nodes[index]))
            found = {name: float(values[index]) for name, values in parts.items()}
            hypothesis = Hypothesis(units, float(totals[index]), float(transducer[index]), found)
            hypotheses[self.beams["utterance"][index]].append(hypothesis)
        return hypotheses
