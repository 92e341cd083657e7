"""The command ``train-recogniser`` as a stage: speech in, a recogniser's folder and a report out."""

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from tasks.errors import ParameterError
from tasks.records.cell import Cell
from tasks.records.stage_report import StageReport, recorded_stage
from tasks.settings.checks import as_plain
from tasks.speech.recogniser.settings import TrainedRecogniser
from tasks.training.checkpoints.identity import hash_of, work_key
from tasks.training.live_curve import Log, curve_of
from tasks.training.options import resources_of
from tasks.training.ranks.plan import RankPlan, plan_ranks
from tasks.training.stage import TrainedFolder, open_checkpoints

if TYPE_CHECKING:
    from tasks.speech.recogniser.features import FeatureStatistics
    from tasks.speech.recogniser.record import RecogniserRecord
    from tasks.speech.recogniser.training_speech import TrainingSpeech
    from tasks.speech.recogniser.units import Units
    from tasks.training.checkpoints.store import CheckpointStore

STAGE = "train-recogniser"
_STATISTICS_UTTERANCES = 500
"""Mean and deviation of the features are taken from so many utterances, drawn at random."""
_LIBRARIES = ("numpy", "torch", "torchaudio", "lightning", "sentencepiece")


def run_training_stage(arguments: argparse.Namespace, settings: TrainedRecogniser, private: bool) -> None:
    """Read the speech, train, write the folder and the report, and print one line.

    With several devices, one process for each runs the whole command, and the first alone writes. Checkpoints are
    removed when everything is written.
    """
    from tasks.speech.recogniser.folder import check_replaceable, save_recogniser
    from tasks.torch_setup import set_up_torch

    check_replaceable(arguments.output)
    resources = resources_of(arguments)
    if arguments.strategy == "fsdp":
        raise ParameterError("--strategy 'fsdp' is for language models; a recogniser fits on one device: give 'ddp'")
    if arguments.compile:
        raise ParameterError("--compile is for language models; a recogniser's encoder is not compiled: leave it out")
    # What the parameter file says of both is meant for the language model.
    strategy = "ddp" if resources.strategy == "fsdp" else resources.strategy
    plan = plan_ranks(resources.devices, resources.nodes, strategy, resources.threads)
    if plan.to_be_started:
        from tasks.training.ranks.processes import start_ranks

        start_ranks(partial(run_training_stage, arguments, settings, private), plan)
        return
    set_up_torch(resources.threads)
    sources = [path for path in (arguments.manifest, arguments.text, arguments.valid) if path]
    with recorded_stage(
        STAGE,
        arguments.report if plan.is_first else None,
        parameters=as_plain(settings),
        seed=settings.training.seed,
        inputs=sources,
        outputs=[arguments.output],
    ) as report:
        from tasks.speech.recogniser.model import parameter_count
        from tasks.speech.recogniser.recogniser import Recogniser, RecogniserDescription

        work = _Work(arguments, settings, plan)
        identity = work.identity()
        files = TrainedFolder(
            output=arguments.output,
            no_resume=not arguments.resume,
            resume_from=arguments.resume_from,
            work_folder=arguments.work_folder,
        )
        curve = curve_of(arguments.params, arguments.report, Cell(), report, plan.is_first)
        every = curve.every_steps
        with open_checkpoints(files, resources, plan, identity, lambda: work.key(identity, every)) as store:
            with curve.open() as on_log:
                record = work.train(store, on_log, every)
            if plan.is_first:
                description = RecogniserDescription(
                    features=settings.features,
                    architecture=settings.architecture,
                    origin="trained on synthetic speech" if work.speech.synthetic else "trained on recordings",
                    synthetic=work.speech.synthetic,
                )
                recogniser = Recogniser(work.network.model, work.units, work.statistics, description)
                found = save_recogniser(arguments.output, recogniser, store=settings.store, private=private)
                report.measure(recogniser_hash=found)
        _measure(report, record, work, parameter_count(work.network.model), resources.threads)
    if plan.is_first:
        # Only now: a run that ends before its report is written can still go on from a checkpoint.
        store.remove()
        _say(arguments.output, record, work)


class _Work:
    """What the stage trains and what it trains it on."""

    def __init__(self, arguments: argparse.Namespace, settings: TrainedRecogniser, plan: RankPlan) -> None:
        from tasks.speech.recogniser.model import make_model
        from tasks.speech.recogniser.network import RecogniserNetwork
        from tasks.speech.recogniser.units import train_units

        self.arguments, self.settings, self.plan = arguments, settings, plan
        self.speech = self._speech(arguments.manifest, arguments.text, "train")
        self.valid: TrainingSpeech | None = None
        if arguments.valid:
            is_text = arguments.text is not None
            self.valid = self._speech(None if is_text else arguments.valid, arguments.valid if is_text else None, "dev")
        training = settings.training
        self.units: Units = train_units(self.speech.texts, settings.units.size, settings.units.sentences)
        self.statistics = self._statistics()
        blank = self.units.blank
        model = make_model(settings.architecture, settings.features, blank + 1, training.seed)
        self.network: RecogniserNetwork = RecogniserNetwork(
            model, settings.architecture.encoding, blank, training.ctc_weight, training.seed
        )

    def _speech(self, manifest: str | None, text: str | None, voices: str) -> "TrainingSpeech":
        settings = self.settings
        if manifest is not None:
            from tasks.speech.recogniser.training_speech import RecordedSpeech

            return RecordedSpeech(manifest, settings.features, settings.training)
        from tasks.speech.recogniser.synthetic_speech import SyntheticSpeech

        assert text is not None
        synthesis = settings.synthesis
        if voices == "dev":
            synthesis = synthesis.model_copy(
                update={"voice_set": "dev", "sentences": settings.training.valid_utterances}
            )
        return SyntheticSpeech(text, synthesis, settings.features, settings.training)

    def _statistics(self) -> "FeatureStatistics":
        import numpy

        from tasks.speech.recogniser.features import feature_statistics

        count = len(self.speech.texts)
        generator = numpy.random.default_rng(self.settings.training.seed)
        rows = numpy.sort(generator.permutation(count)[:_STATISTICS_UTTERANCES])
        heard = (self.speech.features(int(row), 0) for row in rows)
        return feature_statistics(features for features in heard if features is not None)

    def identity(self) -> dict[str, str]:
        """Hashes of what a checkpoint must agree with: units, architecture, and what the order comes from."""
        training = self.settings.training
        order = [self.speech.identity(), training.seed, training.batch_seconds, training.short_first]
        return {
            "vocabulary": self.units.hash,
            "architecture": hash_of([as_plain(self.settings.architecture), bool(training.ctc_weight)]),
            "order": hash_of(order),
        }

    def key(self, identity: dict[str, str], log_every_steps: int) -> str:
        """One hash of everything that decides what the training comes to."""
        return work_key(
            identity,
            packages=[f"speech/{room}" for room in ("audio", "synthesis", "transducer_loss", "recogniser")],
            libraries=_LIBRARIES,
            log_every_steps=log_every_steps,
            settings=as_plain(self.settings),
            valid=None if self.valid is None else self.valid.identity(),
        )

    def train(self, store: "CheckpointStore", on_log: Log, log_every_steps: int) -> "RecogniserRecord":
        """Train the network."""
        from tasks.speech.recogniser.speech_batches import SpeechBatches
        from tasks.speech.recogniser.trainer import train
        from tasks.speech.recogniser.validation import ValidSpeech

        settings, architecture = self.settings, self.settings.architecture
        batches = SpeechBatches(
            self.speech,
            self.units,
            self.statistics,
            architecture,
            settings.training,
            settings.augmentation,
            self.plan,
        )
        valid = None
        if self.valid is not None:
            limit = settings.training.valid_utterances
            valid = ValidSpeech(self.valid, self.units, self.statistics, architecture, limit)
        return train(
            self.network,
            batches,
            settings.training,
            valid=valid,
            on_log=on_log,
            log_every_steps=log_every_steps,
            plan=self.plan,
            store=store,
        )


def _measure(report: StageReport, record: "RecogniserRecord", work: _Work, parameters: int, threads: int) -> None:
    seconds = record.train_seconds
    report.measure(
        steps=record.steps,
        epochs=work.settings.training.epochs,
        utterances=len(work.speech.texts),
        left_out=dict(sorted(work.speech.left_out.items())),
        synthetic=work.speech.synthetic,
        valid_utterances=_valid_utterances(work),
        units=len(work.units),
        units_hash=work.units.hash,
        units_trained_on=record.tokens,
        audio_seconds=round(record.audio_seconds, 1),
        audio_seconds_per_second=round(record.audio_seconds / seconds, 1) if seconds else None,
        train_seconds=round(seconds, 3),
        parameters_count=parameters,
        arithmetic=record.arithmetic,
        threads=threads,
        devices=work.plan.devices,
        nodes=work.plan.nodes,
        strategy=work.plan.strategy,
        resumed_step=record.resumed_step,
        valid_wer=_last(record, "valid_wer"),
        curve=record.curve,
    )
    if work.speech.synthetic:
        report.warn("the recogniser has learned from synthetic speech")


def _valid_utterances(work: _Work) -> int:
    return 0 if work.valid is None else min(len(work.valid.texts), work.settings.training.valid_utterances)


def _last(record: "RecogniserRecord", name: str) -> float | None:
    return next((point[name] for point in reversed(record.curve) if name in point), None)


def _say(output: str, record: "RecogniserRecord", work: _Work) -> None:
    rate = _last(record, "valid_wer")
    valid = "" if rate is None else f"; valid word error rate {100 * rate:.1f} % (greedy)"
    left_out = work.speech.left_out.total()
    print(
        f"{STAGE}: {len(work.speech.texts):,} utterances ({left_out:,} left out), {record.steps:,} steps, "
        f"{record.audio_seconds / 3600:.1f} hours of {'synthetic ' if work.speech.synthetic else ''}speech in "
        f"{record.train_seconds / 60:.1f} minutes{valid}; recogniser in {output}",
        file=sys.stderr,
    )
