"""The command ``train-recogniser`` as a stage: reads speech, writes a recogniser folder and a report."""

import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
import torch

from tasks.errors import ParameterError
from tasks.language_model.model_folder import check_replaceable
from tasks.records.stage_report import Report
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings
from tasks.speech.audio.settings import SynthesisSettings
from tasks.speech.recogniser.folder import load_recogniser, save_recogniser
from tasks.speech.recogniser.network import RecogniserNetwork, RecogniserTrainingModule, ValidSpeech
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser, RecogniserDescription, make_model
from tasks.speech.recogniser.settings import TrainedRecogniser
from tasks.speech.recogniser.speech_batches import SpeechBatches
from tasks.speech.recogniser.training_speech import RecordedSpeech, SyntheticSpeech, TrainingSpeech
from tasks.speech.recogniser.units import Units, train_language_units, train_units
from tasks.training.loop import TrainingRecord, fit
from tasks.training.ranks import RankPlan
from tasks.training.stage import Checkpoints, Curve, Log, checkpoints_of, hash_of

if TYPE_CHECKING:
    from torchaudio.models import RNNT

    from tasks.speech.recogniser.train_recogniser_command import RecogniserFiles

STAGE = "train-recogniser"
_STATISTICS_UTTERANCES = 500
"""Randomly drawn utterances for the mean and deviation of the features."""


def _begin_with(settings: TrainedRecogniser, folder: str) -> Recogniser:
    """The recogniser to start from; ``ParameterError`` if its sizes or features differ."""
    begin = load_recogniser(folder)
    for name in ("architecture", "features"):
        asked, found = (as_plain(getattr(each, name)) for each in (settings, begin.settings))
        if differing := [key for key in asked if asked[key] != found[key]]:
            values = ", ".join(f"{name}.{key} is {asked[key]!r} here and {found[key]!r} there" for key in differing)
            raise ParameterError(f"begin_with {folder!r}: {values}; give the same")
    return begin


_ROWS_OF_UNITS = ("predictor.embedding.weight", "joiner.linear.weight", "joiner.linear.bias")
"""Weights of the transducer that have a row for each unit, followed by one for the blank."""


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


class _Work:
    """The network, the speech that it is trained on, and the training."""

    def __init__(self, files: "RecogniserFiles", settings: TrainedRecogniser, plan: RankPlan) -> None:
        self.settings, self.plan = settings, plan
        self.speech = self._speech(files.manifest, files.input, settings.synthesis)
        self.kind = "synthetic speech" if self.speech.synthetic else "recordings"
        self.valid: TrainingSpeech | None = None
        if files.valid:
            held_out = {"voice_set": "dev", "sentences": settings.training.valid_utterances}
            manifest, text = (None, files.valid) if files.input is not None else (files.valid, None)
            self.valid = self._speech(manifest, text, settings.synthesis.model_copy(update=held_out))
        self.begin = None if settings.begin_with is None else _begin_with(settings, settings.begin_with)
        self.units = self._units()
        self.statistics = self._statistics() if self.begin is None else self.begin.feature_statistics
        blank, seed = self.units.blank, settings.training.seed
        model = make_model(settings.architecture, settings.features, blank + 1, seed)
        if self.begin is not None:
            _take_over(model, self.units, self.begin)
        self.network = RecogniserNetwork(model, settings.architecture.encoding, blank, seed)

    def _speech(self, manifest: str | None, text: str | None, synthesis: SynthesisSettings) -> TrainingSpeech:
        settings = self.settings
        if manifest is not None:
            return RecordedSpeech(manifest, settings.features, settings.training, settings.languages)
        if settings.languages:
            synthesis = synthesis.model_copy(update={"languages": settings.languages})
        return SyntheticSpeech(str(text), synthesis, settings.features, settings.training)

    def _units(self) -> Units:
        settings, begin = self.settings, self.begin
        units = settings.units
        if begin is not None and list(begin.settings.unit_languages) == list(settings.languages):
            if len(begin.units) != units.size:
                raise ParameterError(
                    f"units.size is {units.size}, and {settings.begin_with!r}, whose units are retained, has "
                    f"{len(begin.units)}; give that number"
                )
            return begin.units
        if self.speech.languages is None or units.pooled:
            return train_units(self.speech.texts, units.size, units.sentences)
        texts = zip(self.speech.texts, self.speech.languages, strict=True)
        return train_language_units(texts, settings.languages, units.size, units.sentences)

    def _statistics(self) -> FeatureStatistics:
        generator = np.random.default_rng(self.settings.training.seed)
        rows = np.sort(generator.permutation(len(self.speech.texts))[:_STATISTICS_UTTERANCES])
        heard = (self.speech.features(int(row), 0) for row in rows)
        return FeatureStatistics.of(features for features in heard if features is not None)

    def checkpoints(self, output: str, resources: ResourceSettings, every: int) -> AbstractContextManager[Checkpoints]:
        """Checkpoints of this training only, with a point of the curve at ``every`` so many steps."""
        settings, training = self.settings, self.settings.training
        # Units, architecture and order of batches, which a checkpoint must match.
        order = self.speech.identity(), training.seed, training.batch_seconds, training.short_first
        begin = None if self.begin is None else self.begin.hash
        key = hash_of(begin, self.units.hash, as_plain(settings.architecture), order)
        valid = None if self.valid is None else self.valid.identity()
        return checkpoints_of(output, resources, self.plan, key, as_plain(settings), valid, every)

    def train(self, checkpoints: Checkpoints, on_log: Log, every: int, threads: int) -> TrainingRecord:
        """Train the network and return a record; the network is on the processor and in evaluation mode afterwards.

        With a GPU, the other ``threads`` synthesise the next speech. Training resumes from a checkpoint if there is
        one. Raises the errors of ``fit``.
        """
        settings, training = self.settings, self.settings.training
        workers = threads - 1 if torch.cuda.is_available() and isinstance(self.speech, SyntheticSpeech) else 0
        batches = SpeechBatches(self.speech, self.units, self.statistics, settings, self.plan, workers)
        valid = None
        if self.valid is not None:
            limit = training.valid_utterances
            valid = ValidSpeech(self.valid, self.units, self.statistics, settings.architecture, limit)
        self.network.train()
        module = RecogniserTrainingModule(self.network, training, training.seed, batches, valid, on_log, every)
        record = fit(module, checkpoints)
        self.network.cpu().eval()
        return record

    def save(self, output: str) -> str:
        """Write the recogniser and return its hash."""
        description = RecogniserDescription(
            features=self.settings.features,
            architecture=self.settings.architecture,
            origin=f"trained on {self.kind}",
            synthetic=self.speech.synthetic,
            unit_languages=list(self.units.languages),
        )
        recogniser = Recogniser(self.network.model, self.units, self.statistics, description)
        return save_recogniser(output, recogniser, store="float16")


def train_on_speech(
    settings: TrainedRecogniser,
    files: "RecogniserFiles",
    resources: ResourceSettings,
    plan: RankPlan,
    curve: Curve,
) -> Report:
    """Read the speech, train, write the folder, and print one line.

    With several devices, one process for each does all of it, and only the first writes.
    """
    check_replaceable(files.output)
    work, training = _Work(files, settings, plan), settings.training
    speech, every = work.speech, curve.every_steps
    with work.checkpoints(files.output, resources, every) as checkpoints:
        with curve.open() as on_log:
            record = work.train(checkpoints, on_log, every, resources.threads)
        found = work.save(files.output) if plan.is_first else None
    rate = next((point["valid_wer"] for point in reversed(record.curve) if "valid_wer" in point), None)
    report = Report(seed=training.seed).measure(
        epochs=training.epochs,
        utterances=len(speech.texts),
        left_out=dict(sorted(speech.left_out.items())),
        synthetic=speech.synthetic,
        valid_utterances=min(len(work.valid.texts), training.valid_utterances) if work.valid else 0,
        units=len(work.units),
        units_hash=work.units.hash,
        begins_with=None if work.begin is None else work.begin.hash,
        units_trained_on=record.tokens,
        audio_seconds=round(record.audio_seconds, 1),
        audio_seconds_per_second=round(record.audio_seconds / record.train_seconds, 1)
        if record.train_seconds
        else None,
        parameters_count=sum(weights.numel() for weights in work.network.model.parameters()),
        threads=resources.threads,
        valid_wer=rate,
        **record.measured(plan),
    )
    if speech.synthetic:
        report.warn("the recogniser was trained on synthetic speech")
    if plan.is_first:
        report.measure(recogniser_hash=found)
        print(
            f"{STAGE}: {len(speech.texts):,} utterances ({speech.left_out.total():,} left out), {record.steps:,} "
            f"steps, {record.audio_seconds / 3600:.1f} hours of {work.kind} in {record.train_seconds / 60:.1f} minutes"
            + ("" if rate is None else f"; valid word error rate {rate:.1%} (greedy)")
            + f"; recogniser in {files.output}",
            file=sys.stderr,
        )
    return report
