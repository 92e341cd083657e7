"""The training of a recogniser: reads speech, writes a recogniser folder and a report."""

import sys
from typing import TYPE_CHECKING

import numpy as np
import torch

from tasks.errors import ParameterError
from tasks.language_model.model_folder import check_replaceable
from tasks.records.stage_report import Report
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings
from tasks.speech.recogniser.folder import load_recogniser, save_recogniser
from tasks.speech.recogniser.network import RecogniserNetwork, RecogniserTrainingModule, valid_utterances
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser, RecogniserDescription, make_model
from tasks.speech.recogniser.settings import TrainedRecogniser
from tasks.speech.recogniser.speech_batches import SpeechBatches
from tasks.speech.recogniser.training_speech import RecordedSpeech, SyntheticSpeech, TrainingSpeech
from tasks.speech.recogniser.units import Units, train_language_units, train_units
from tasks.training.loop import fit
from tasks.training.ranks import plan_ranks
from tasks.training.stage import Curve, checkpoints_of, hash_of

if TYPE_CHECKING:
    from torchaudio.models import RNNT

    from tasks.speech.recogniser.train_recogniser_command import RecogniserFiles

_STATISTICS_UTTERANCES = 500
"""Randomly drawn utterances for the mean and deviation of the features."""
_ROWS_OF_UNITS = ("predictor.embedding.weight", "joiner.linear.weight", "joiner.linear.bias")
"""Weights of the transducer that have a row for each unit, followed by one for the blank."""


def train_on_speech(
    settings: TrainedRecogniser, files: "RecogniserFiles", resources: ResourceSettings, curve: Curve
) -> Report:
    """Read the speech, train, write the folder, and print one line.

    With several devices, one process for each does all of it, and only the first writes. With a GPU, the other threads
    synthesise the next speech. Training resumes from a checkpoint if there is one.
    """
    # A recogniser fits on one device; "fsdp" is for the language model.
    plan = plan_ranks(resources.model_copy(update={"strategy": "ddp"}))
    check_replaceable(files.output)
    training, seed, every = settings.training, settings.training.seed, curve.every_steps
    speech = _speech(settings, files.manifest or files.input, is_text=files.input is not None)
    held_out: TrainingSpeech | None = None
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
    kind = "synthetic speech" if speech.synthetic else "recordings"
    saved = None
    with checkpoints_of(files.output, resources, plan, key, *decisive) as checkpoints:
        with curve.open() as on_log:
            synthesises = torch.cuda.is_available() and isinstance(speech, SyntheticSpeech)
            workers = resources.threads - 1 if synthesises else 0
            batches = SpeechBatches(speech, units, statistics, settings, plan, workers)
            valid = None
            if held_out is not None:
                valid = valid_utterances(held_out, units, statistics, training.valid_utterances)
            network.train()
            record = fit(RecogniserTrainingModule(network, training, seed, batches, valid, on_log, every), checkpoints)
            network.cpu().eval()
        if plan.is_first:
            description = RecogniserDescription(
                features=settings.features,
                architecture=settings.architecture,
                origin=f"trained on {kind}",
                synthetic=speech.synthetic,
                unit_languages=list(units.languages),
            )
            trained = Recogniser(network.model, units, statistics, description)
            saved = save_recogniser(files.output, trained)
    rate = next((point["valid_wer"] for point in reversed(record.curve) if "valid_wer" in point), None)
    per_second = round(record.audio_seconds / record.train_seconds, 1) if record.train_seconds else None
    report = Report(seed=seed).measure(
        epochs=training.epochs,
        utterances=len(speech.texts),
        left_out=dict(sorted(speech.left_out.items())),
        synthetic=speech.synthetic,
        valid_utterances=min(len(held_out.texts), training.valid_utterances) if held_out else 0,
        units=len(units),
        units_hash=units.hash,
        begins_with=begin_hash,
        units_trained_on=record.tokens,
        audio_seconds=round(record.audio_seconds, 1),
        audio_seconds_per_second=per_second,
        parameters_count=sum(weights.numel() for weights in model.parameters()),
        threads=resources.threads,
        valid_wer=rate,
        **record.measured(plan),
    )
    if speech.synthetic:
        report.warn("the recogniser was trained on synthetic speech")
    if plan.is_first:
        report.measure(recogniser_hash=saved)
        print(
            f"train-recogniser: {len(speech.texts):,} utterances ({speech.left_out.total():,} left out), "
            f"{record.steps:,} steps, {record.audio_seconds / 3600:.1f} hours of {kind} in "
            f"{record.train_seconds / 60:.1f} minutes"
            + ("" if rate is None else f"; valid word error rate {rate:.1%} (greedy)")
            + f"; recogniser in {files.output}",
            file=sys.stderr,
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
    units = settings.units
    if begin is not None and list(begin.settings.unit_languages) == list(settings.languages):
        if len(begin.units) != units.size:
            raise ParameterError(
                f"units.size is {units.size}, and {settings.begin_with!r}, whose units are retained, has "
                f"{len(begin.units)}; give that number"
            )
        return begin.units
    if speech.languages is None:
        return train_units(speech.texts, units.size)
    return train_language_units(zip(speech.texts, speech.languages, strict=True), settings.languages, units.size)


def _statistics(speech: TrainingSpeech, seed: int) -> FeatureStatistics:
    rows = np.sort(np.random.default_rng(seed).permutation(len(speech.texts))[:_STATISTICS_UTTERANCES])
    heard = (speech.features(int(row), 0) for row in rows)
    return FeatureStatistics.of(features for features in heard if features is not None)
