"""Speech through the encoder: whole utterances in a batch, or one utterance piece by piece as it is spoken."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tasks.speech.recogniser.features import pad_features
from tasks.speech.recogniser.settings import RecogniserArchitecture

if TYPE_CHECKING:
    from torchaudio.models import RNNT


@torch.no_grad()
def transcribe(model: "RNNT", features: Sequence[Tensor], architecture: RecogniserArchitecture) -> list[Tensor]:
    """Encoded frames (T', D) of whole utterances, from normalised features (T, bands); ``T' = T // reduction``.

    An utterance with fewer frames than ``reduction`` has no encoded frame.
    """
    batch, lengths = pad_features(features, architecture)
    # Lengths in whole segments: how much of the padding behind a shorter one torchaudio's encoder hides depends on how
    # long the longest utterance of the batch is. Of an utterance alone, or in a stream, it hides none.
    segments = -(-lengths // architecture.segment_frames) * architecture.segment_frames
    device = next(model.parameters()).device
    encoded, _ = model.transcribe(batch.to(device), segments.to(device))
    frames = (lengths // architecture.reduction).tolist()
    return [row[:length].cpu() for row, length in zip(encoded, frames, strict=True)]


class StreamingTranscriber:
    """The encoder for one utterance that is still being spoken.

    It sees ``segment_frames`` new frames at a time and ``right_context_frames`` beyond them, so it is late by
    both. What it gives equals ``transcribe`` of the whole utterance up to rounding.
    """

    def __init__(self, model: "RNNT", architecture: RecogniserArchitecture) -> None:
        self.model, self.architecture = model, architecture
        self._state: Any = None
        self._waiting: Tensor | None = None

    def feed(self, features: Tensor) -> Tensor:
        """Take in normalised features (T, bands), any number; gives the encoded frames (T', D) that are ready."""
        waiting = features if self._waiting is None else torch.cat([self._waiting, features])
        segment, right = self.architecture.segment_frames, self.architecture.right_context_frames
        ready = []
        while len(waiting) >= segment + right:
            ready.append(self._infer(waiting[: segment + right], segment))
            waiting = waiting[segment:]
        self._waiting = waiting
        return torch.cat(ready) if ready else self._nothing()

    def finish(self) -> Tensor:
        """The encoded frames (T', D) of what is left when the utterance has ended; begins a new one."""
        waiting, self._waiting = self._waiting, None
        segment, right = self.architecture.segment_frames, self.architecture.right_context_frames
        ready = []
        while waiting is not None and len(waiting) > 0:
            valid = min(len(waiting), segment)
            padded = waiting.new_zeros(segment + right, waiting.shape[1])
            padded[: min(len(waiting), segment + right)] = waiting[: segment + right]
            ready.append(self._infer(padded, valid))
            waiting = waiting[segment:]
        self._state = None
        return torch.cat(ready) if ready else self._nothing()

    @torch.no_grad()
    def _infer(self, features: Tensor, valid: int) -> Tensor:
        device = next(self.model.parameters()).device
        # The lengths that torchaudio's streaming mode takes count the right context too.
        length = torch.tensor([len(features)], device=device)
        encoded, _, self._state = self.model.transcribe_streaming(features[None].to(device), length, self._state)
        return encoded[0, : valid // self.architecture.reduction].cpu()

    def _nothing(self) -> Tensor:
        return torch.zeros(0, self.architecture.encoding)
