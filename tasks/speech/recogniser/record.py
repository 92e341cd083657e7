"""What a recogniser's training did, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.training.record import TrainingRecord


@dataclass
class RecogniserRecord(TrainingRecord):
    """What a training run did, from its beginning; ``tokens`` counts units.

    Points of the curve: ``step``, ``train_loss`` (the transducer's, nats a unit, mean since the last such point),
    ``encoder_loss`` (the same of the loss on the encoder alone), ``learning_rate``; points of validation: ``step``,
    ``epoch``, ``valid_loss`` (nats a unit) and ``valid_wer`` (greedy decoding, a share).
    """

    audio_seconds: float = 0.0
    """Speech that was trained on, over all epochs and devices."""

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {**super().as_state(), "audio_seconds": self.audio_seconds}

    def go_on_from(self, state: Mapping[str, Any]) -> None:
        """Take up what a checkpoint's ``state`` says was done."""
        super().go_on_from(state)
        self.audio_seconds = state["audio_seconds"]
