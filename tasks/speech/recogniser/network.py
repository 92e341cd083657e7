"""What is trained: the recogniser's network and, while it learns, a second projection of the encoder."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import ctc_loss

from tasks.speech.recogniser.speech_batches import SpeechBatch
from tasks.speech.transducer_loss.loss import transducer_loss

if TYPE_CHECKING:
    from torchaudio.models import RNNT


class RecogniserNetwork(nn.Module):
    """A transducer, with a projection onto the units for the loss on the encoder alone where that has a weight."""

    def __init__(self, model: "RNNT", encoding: int, blank: int, ctc_weight: float, seed: int) -> None:
        super().__init__()
        self.model, self.blank, self.ctc_weight = model, blank, ctc_weight
        self.projection: nn.Linear | None = None
        if ctc_weight:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.projection = nn.Linear(encoding, blank + 1)

    def forward(self, batch: SpeechBatch) -> tuple[Tensor, Tensor | None]:
        """Sums over the utterances, in nats: the transducer's loss, and the other where there is one.

        The predictor reads the blank as the begin of an utterance, as torchaudio's search does.
        """
        encoded, frames = self.model.transcriber(batch.features, batch.lengths)  # (B, T', D)
        begin = batch.targets.new_full((len(batch.targets), 1), self.blank)
        read = torch.cat([begin, batch.targets], dim=1)  # (B, U + 1)
        predicted, _, _ = self.model.predictor(read, batch.target_lengths + 1, None)  # (B, U + 1, D)
        logits, _, _ = self.model.joiner(encoded, frames, predicted, batch.target_lengths + 1)  # (B, T', U + 1, V)
        loss = transducer_loss(logits, batch.targets, frames, batch.target_lengths, self.blank, reduction="sum")
        if self.projection is None:
            return loss, None
        scores = self.projection(encoded).float().log_softmax(-1).transpose(0, 1)  # (T', B, V)
        second = ctc_loss(
            scores,
            batch.targets,
            frames.long(),
            batch.target_lengths,
            blank=self.blank,
            reduction="sum",
            # More units than frames have no alignment there; the transducer's loss still has one.
            zero_infinity=True,
        )
        return loss, second
