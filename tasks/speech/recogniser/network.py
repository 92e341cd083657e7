"""Training of a recogniser with Lightning, with the same handling of ranks and checkpoints as for language models."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import ctc_loss

from tasks.errors import SpeechError
from tasks.speech.recogniser.recogniser import FeatureStatistics, transcribe
from tasks.speech.recogniser.settings import RecogniserTraining
from tasks.speech.recogniser.speech_batches import SpeechBatch, SpeechBatches, pad_targets
from tasks.speech.recogniser.training_speech import TrainingSpeech
from tasks.speech.recogniser.transducer_loss import transducer_loss
from tasks.speech.recogniser.units import Units
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.word_errors.word_errors import ALL, count_errors
from tasks.training.loop import Training

if TYPE_CHECKING:
    from torchaudio.models import RNNT


_ENCODER_LOSS_WEIGHT = 0.3
"""Weight of the second loss (CTC), which trains the encoder on the units early."""


class RecogniserNetwork(nn.Module):
    """A transducer, and, in training only, a projection of the encoder's frames onto the units for a second loss."""

    def __init__(self, model: "RNNT", encoding: int, blank: int, seed: int) -> None:
        super().__init__()
        self.model, self.blank = model, blank
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.projection = nn.Linear(encoding, blank + 1)

    def forward(self, batch: SpeechBatch) -> tuple[Tensor, Tensor]:
        """Sums over the utterances, in nats: the transducer's loss and the encoder's loss."""
        encoded, frames = self.model.transcriber(batch.features, batch.lengths)  # (B, T', D)
        loss = self.loss_of(encoded, frames, batch.targets, batch.target_lengths)
        scores = self.projection(encoded).float().log_softmax(-1).transpose(0, 1)  # (T', B, V)
        # More units than frames have no CTC alignment; the transducer's loss still has one.
        sizes = frames.long(), batch.target_lengths
        return loss, ctc_loss(scores, batch.targets, *sizes, self.blank, reduction="sum", zero_infinity=True)

    def loss_of(self, encoded: Tensor, frames: Tensor, targets: Tensor, lengths: Tensor) -> Tensor:
        """The transducer's loss in nats, summed over utterances (B, T', D) with numbers of frames (B,) and units (B,).

        The predictor reads the blank as the start of an utterance, as in torchaudio's search.
        """
        begin = targets.new_full((len(targets), 1), self.blank)
        read = torch.cat([begin, targets], dim=1)  # (B, U + 1)
        predicted, _, _ = self.model.predictor(read, lengths + 1, None)  # (B, U + 1, D)
        logits, _, _ = self.model.joiner(encoded, frames, predicted, lengths + 1)  # (B, T', U + 1, V)
        return transducer_loss(logits, targets, frames, lengths, self.blank).sum()


_BATCH, _GREEDY = 16, SearchSettings(beam_width=1, nbest=1)
ValidUtterance = tuple[str, list[int], Tensor]
"""Words, units and normalised features of a held-out utterance, the same at every validation."""


def valid_utterances(
    speech: TrainingSpeech, units: Units, statistics: FeatureStatistics, limit: int
) -> list[ValidUtterance]:
    """The first ``limit`` utterances of ``speech``, sorted by length. ``SpeechError`` if all are silent."""
    found: list[ValidUtterance] = []
    rows = range(min(limit, len(speech.texts)))
    for row in sorted(rows, key=lambda row: (float(speech.seconds[row]), row)):
        if (features := speech.features(row, 0)) is not None:
            of_words = speech.languages[row] if speech.languages else None
            ids = units.encode(speech.texts[row], of_words)
            found.append((speech.texts[row], ids, statistics.normalise(features)))
    if not found:
        raise SpeechError("the held-out speech is silent; give other speech to measure progress on")
    return found


class RecogniserTrainingModule(Training):
    """One network, with its losses in nats per unit and its validation.

    The curve has ``train_loss`` (the transducer's), ``encoder_loss`` (connectionist temporal classification),
    ``valid_loss`` and ``valid_wer`` (a beam of one hypothesis, a share).
    """

    validates_first = False
    loss_names = ("train_loss", "encoder_loss")
    model: RecogniserNetwork
    settings: RecogniserTraining
    valid: list[ValidUtterance] | None
    batches: SpeechBatches

    def training_step(self, part: tuple[SpeechBatch, float], batch_index: int) -> Tensor:
        """Loss of this rank's utterances in nats, by the divisor of the batch."""
        batch, divisor = part
        loss, encoder_loss = (part * batch.weight / divisor for part in self.model(batch))
        self.note(divisor, loss, encoder_loss, seconds=batch.seconds)
        return loss + _ENCODER_LOSS_WEIGHT * encoder_loss

    @torch.no_grad()
    def measure(self) -> list[float]:
        """Sums over this rank's held-out utterances: loss in nats, units, word errors, words.

        The network is in evaluation mode afterwards.
        """
        assert self.valid is not None
        network, units, plan = self.model.eval(), self.batches.units, self.batches.plan
        utterances = self.valid[plan.rank :: plan.world_size]
        loss, found = 0.0, dict[str, str]()
        for start in range(0, len(utterances), _BATCH):
            _, targets, features = zip(*utterances[start : start + _BATCH], strict=True)
            encoded = transcribe(network.model, features, self.batches.architecture)
            frames = torch.tensor([len(each) for each in encoded], device=self.device)
            padded, lengths = (each.to(self.device) for each in pad_targets(targets))
            stacked = torch.nn.utils.rnn.pad_sequence(encoded, batch_first=True).to(self.device)  # (B, T', D)
            loss += float(network.loss_of(stacked, frames, padded, lengths))
            for best, *_ in beam_search(network.model, units.blank, encoded, _GREEDY):
                found[str(len(found))] = units.decode(best.units)
        if not utterances:
            return [0.0] * 4
        errors = count_errors({str(row): text for row, (text, _, _) in enumerate(utterances)}, found)
        words, wrong, _ = errors.of(ALL)
        return [loss, float(sum(len(ids) for _, ids, _ in utterances)), float(wrong.sum()), float(words.sum())]

    def valid_values(self, sums: list[float]) -> dict[str, float]:
        """Loss and word error rate."""
        loss, units, errors, words = sums
        return {"valid_loss": loss / units, "valid_wer": errors / words}
