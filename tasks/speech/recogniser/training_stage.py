"""The training of a recogniser with Lightning; ranks and checkpoints are those of language models."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import ctc_loss

from tasks.errors import ParameterError, SpeechError
from tasks.language_model.model_folder import check_replaceable
from tasks.records.stage_report import Report
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings
from tasks.speech.recogniser.recogniser import (
    FeatureStatistics,
    Recogniser,
    RecogniserDescription,
    load_recogniser,
    make_model,
    save_recogniser,
    transcribe,
)
from tasks.speech.recogniser.settings import RecogniserTraining, TrainedRecogniser
from tasks.speech.recogniser.speech_batches import SpeechBatch, SpeechBatches, pad_targets
from tasks.speech.recogniser.training_speech import RecordedSpeech, SyntheticSpeech, TrainingSpeech
from tasks.speech.recogniser.transducer_loss import transducer_loss
from tasks.speech.recogniser.units import Units, train_language_units, train_units
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.word_errors.word_errors import ALL, count_errors
from tasks.training.loop import Training, fit
from tasks.training.ranks import plan_ranks
from tasks.training.stage import Curve, checkpoints_of, hash_of

if TYPE_CHECKING:
    from torchaudio.models import RNNT

    from tasks.speech.recogniser.train_recogniser_command import RecogniserFiles

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


_STATISTICS_UTTERANCES = 500
"""Randomly drawn utterances for the mean and deviation of the features."""
_ROWS_OF_UNITS = ("predictor.embedding.weight", "joiner.linear.weight", "joiner.linear.bias")
"""Weights of the transducer that have a row for each unit, followed by one for the blank."""


def train_on_speech(
    settings: TrainedRecogniser, files: "RecogniserFiles", resources: ResourceSettings, curve: Curve
) -> Report:
    """Read the speech, train and write the folder.

    With several devices, one process for each does all of it, and only the first writes. Training resumes from a
    checkpoint if there is one.
    """
    # A recogniser fits on one device; "fsdp" is for the language model.
    plan = plan_ranks(resources.model_copy(update={"strategy": "ddp"}))
    check_replaceable(files.output)
    training, seed, every = settings.training, settings.training.seed, curve.every_steps
    speech = _speech(settings, files.manifest or files.input, is_text=files.input is not None)
    held_out = None
    if files.valid:
        changes = {"voice_set": "dev", "sentences": training.valid_utterances}
        held_out = _speech(settings, files.valid, is_text=files.input is not None, **changes)
    begin = None if settings.begin_with is None else _begin_with(settings, settings.begin_with)
    begin_hash = None if begin is None else begin.hash
    units = _units(settings, speech, begin)
    statistics = _statistics(speech, seed) if begin is None else begin.feature_statistics
    model = make_model(settings.architecture, settings.features, units.blank + 1, seed)
    if begin is not None:
        _take_over(model, units, begin)
    network = RecogniserNetwork(model, settings.architecture.encoding, units.blank, seed)
    # Units, architecture and order of batches, which a checkpoint must match.
    order = speech.identity, seed, training.batch_seconds, training.short_first
    key = hash_of(begin_hash, units.hash, as_plain(settings.architecture), order)
    decisive = as_plain(settings), None if held_out is None else held_out.identity, every
    with checkpoints_of(files.output, resources, plan, key, *decisive) as checkpoints:
        with curve.open() as on_log:
            batches = SpeechBatches(speech, units, statistics, settings, plan)
            valid = held_out and valid_utterances(held_out, units, statistics, training.valid_utterances)
            network.train()
            record = fit(RecogniserTrainingModule(network, training, seed, batches, valid, on_log, every), checkpoints)
            network.cpu().eval()
        report = Report(seed=seed).measure(
            epochs=training.epochs,
            utterances=len(speech.texts),
            left_out=dict(sorted(speech.left_out.items())),
            synthetic=speech.synthetic,
            units=len(units),
            units_hash=units.hash,
            begins_with=begin_hash,
            audio_seconds=round(record.audio_seconds, 1),
            valid_wer=next((point["valid_wer"] for point in reversed(record.curve) if "valid_wer" in point), None),
            **record.measured(plan),
        )
        if speech.synthetic:
            report.warn("the recogniser was trained on synthetic speech")
        if plan.is_first:
            kind = "synthetic speech" if speech.synthetic else "recordings"
            description = RecogniserDescription(
                features=settings.features,
                architecture=settings.architecture,
                origin=f"trained on {kind}",
                synthetic=speech.synthetic,
                unit_languages=list(units.languages),
            )
            trained = Recogniser(network.model, units, statistics, description)
            report.measure(recogniser_hash=save_recogniser(files.output, trained))
            report.shown = (
                f"{len(speech.texts):,} utterances ({speech.left_out.total():,} left out), {record.steps:,} steps, "
                f"{record.audio_seconds / 3600:.1f} hours of {kind}; recogniser in {files.output}"
            )
    return report


def _speech(settings: TrainedRecogniser, path: str | None, *, is_text: bool, **synthesis: object) -> TrainingSpeech:
    """Recordings of a manifest, or sentences of a text with these changes to the settings of their ``synthesis``."""
    if not is_text:
        return RecordedSpeech(str(path), settings.features, settings.training, settings.languages)
    changed = settings.synthesis.model_copy(update={"languages": settings.languages, **synthesis})
    return SyntheticSpeech(str(path), changed, settings.features, settings.training)


def _begin_with(settings: TrainedRecogniser, folder: str) -> Recogniser:
    """The recogniser to start from; ``ParameterError`` if its sizes or features differ."""
    begin = load_recogniser(folder)
    for name in ("architecture", "features"):
        asked, found = (as_plain(getattr(each, name)) for each in (settings, begin.settings))
        if differing := [key for key in asked if asked[key] != found[key]]:
            values = ", ".join(f"{name}.{key} is {asked[key]!r} here and {found[key]!r} there" for key in differing)
            raise ParameterError(f"begin_with {folder!r}: {values}; give the same")
    return begin


def _take_over(model: "RNNT", units: Units, begin: Recogniser) -> None:
    """Copy the weights of another recogniser into a new network.

    Units with the same spelling get the same weights, whatever their language. A unit that the other recogniser lacks
    has its new weights.
    """
    known = {piece: row for row, piece in reversed(list(enumerate(begin.units.pieces)))}
    rows = {row: known[piece] for row, piece in enumerate(units.pieces) if piece in known}
    rows[units.blank] = begin.units.blank
    weights = model.state_dict()
    for name, value in begin.model.state_dict().items():
        if name in _ROWS_OF_UNITS:
            weights[name][list(rows)] = value[list(rows.values())]
        else:
            weights[name] = value
    model.load_state_dict(weights)


def _units(settings: TrainedRecogniser, speech: TrainingSpeech, begin: Recogniser | None) -> Units:
    """New units of the speech, or those of the recogniser to start from if it has the same languages."""
    size = settings.units.size
    if begin is not None and list(begin.settings.unit_languages) == list(settings.languages):
        if len(begin.units) != size:
            raise ParameterError(
                f"units.size is {size}, and begin_with retains {len(begin.units)} units; give that number"
            )
        return begin.units
    if speech.languages is None:
        return train_units(speech.texts, size)
    return train_language_units(zip(speech.texts, speech.languages, strict=True), settings.languages, size)


def _statistics(speech: TrainingSpeech, seed: int) -> FeatureStatistics:
    rows = np.sort(np.random.default_rng(seed).permutation(len(speech.texts))[:_STATISTICS_UTTERANCES])
    heard = (speech.features(int(row), 0) for row in rows)
    return FeatureStatistics.of(features for features in heard if features is not None)
