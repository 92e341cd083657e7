"""How good a recogniser is while it learns: its loss and its word error rate on held-out speech."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tasks.errors import SpeechError
from tasks.speech.recogniser.features import FeatureStatistics
from tasks.speech.recogniser.greedy import greedy_decode
from tasks.speech.recogniser.network import RecogniserNetwork
from tasks.speech.recogniser.settings import RecogniserArchitecture
from tasks.speech.recogniser.speech_batches import pad_targets
from tasks.speech.recogniser.training_speech import TrainingSpeech
from tasks.speech.recogniser.transcription import transcribe
from tasks.speech.recogniser.units import Units
from tasks.speech.transducer_loss.loss import transducer_loss
from tasks.speech.word_errors.word_errors import count_errors

_BATCH = 16


class ValidSpeech:
    """Held-out utterances with their features, the same at every validation."""

    def __init__(
        self,
        speech: TrainingSpeech,
        units: Units,
        statistics: FeatureStatistics,
        architecture: RecogniserArchitecture,
        limit: int,
    ) -> None:
        """The first ``limit`` utterances of ``speech``, sorted by length. ``SpeechError`` where all are silent."""
        rows = sorted(range(min(limit, len(speech.texts))), key=lambda row: (float(speech.seconds[row]), row))
        heard = [(speech.texts[row], speech.features(row, 0)) for row in rows]
        self.texts = [text for text, features in heard if features is not None]
        self.features = [statistics.normalise(features) for _, features in heard if features is not None]
        if not self.texts:
            raise SpeechError("nothing can be heard in the held-out speech; give other speech to measure progress on")
        self.units, self.architecture = units, architecture

    def measure(self, network: RecogniserNetwork, rank: int = 0, ranks: int = 1) -> list[float]:
        """Sums over this rank's utterances: loss in nats, units, word errors, words.

        The network is left in evaluation mode.
        """
        network.eval()
        texts, features = self.texts[rank::ranks], self.features[rank::ranks]
        loss, units, found = 0.0, 0, []
        for start in range(0, len(texts), _BATCH):
            part = features[start : start + _BATCH]
            targets = [self.units.encode(text) for text in texts[start : start + _BATCH]]
            encoded = transcribe(network.model, part, self.architecture)
            loss += self._loss(network, encoded, targets)
            units += sum(map(len, targets))
            found += [self.units.decode(ids) for ids in greedy_decode(network.model, self.units.blank, encoded)]
        if not texts:
            return [0.0] * 4
        errors = count_errors(
            {str(row): text for row, text in enumerate(texts)}, {str(row): text for row, text in enumerate(found)}
        )
        return [loss, float(units), float(errors.errors.sum()), float(errors.words.sum())]

    @torch.no_grad()
    def _loss(self, network: RecogniserNetwork, encoded: Sequence[Tensor], targets: Sequence[Sequence[int]]) -> float:
        device = next(network.parameters()).device
        frames = torch.tensor([len(each) for each in encoded], device=device)
        padded, lengths = (each.to(device) for each in pad_targets(targets))
        begin = padded.new_full((len(padded), 1), network.blank)
        predicted, _, _ = network.model.predictor(torch.cat([begin, padded], dim=1), lengths + 1, None)
        stacked = torch.nn.utils.rnn.pad_sequence(list(encoded), batch_first=True).to(device)  # (B, T', D)
        logits, _, _ = network.model.joiner(stacked, frames, predicted, lengths + 1)
        return float(transducer_loss(logits, padded, frames, lengths, network.blank, reduction="sum"))
