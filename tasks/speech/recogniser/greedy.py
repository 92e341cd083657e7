"""Greedy decoding of many utterances at once: the best unit at each step, for validation and a first look.

What counts is the search over several hypotheses in ``tasks.speech.search``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torchaudio.models import RNNT

_MOST_UNITS_PER_FRAME = 10
"""Guard against a joiner that never emits the blank."""


@torch.no_grad()
def greedy_decode(model: "RNNT", blank: int, encoded: Sequence[Tensor]) -> list[list[int]]:
    """Units of each utterance from its encoded frames (T', D); the blank is left out."""
    if not encoded:
        return []
    count = len(encoded)
    device = next(model.parameters()).device
    lengths = torch.tensor([len(frames) for frames in encoded], device=device)
    frames = torch.nn.utils.rnn.pad_sequence(list(encoded), batch_first=True).to(device)  # (B, T', D)
    ones = torch.ones(count, dtype=torch.int32, device=device)
    last = torch.full((count, 1), blank, device=device)
    predicted, _, state = model.predict(last, ones, None)  # (B, 1, D)
    found: list[list[int]] = [[] for _ in range(count)]
    for time in range(frames.shape[1]):
        active = time < lengths  # (B,)
        for _ in range(_MOST_UNITS_PER_FRAME):
            scores, _, _ = model.join(frames[:, time : time + 1], ones, predicted, ones)  # (B, 1, 1, V)
            best = scores[:, 0, 0].argmax(-1)  # (B,)
            active = active & (best != blank)
            if not bool(active.any()):
                break
            for row in active.nonzero()[:, 0].tolist():
                found[row].append(int(best[row]))
            following, _, next_state = model.predict(best[:, None], ones, state)
            predicted = torch.where(active[:, None, None], following, predicted)
            state = [
                [torch.where(active[:, None], new, old) for new, old in zip(new_layer, old_layer, strict=True)]
                for new_layer, old_layer in zip(next_state, state, strict=True)
            ]
    return found
