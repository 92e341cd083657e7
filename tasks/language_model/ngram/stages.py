"""The stages ``pretrain`` and ``adapt`` for an n-gram model.

Pretraining estimates the generic model. An adaptation estimates a model of its own text and mixes it with the generic
one; unless a setting fixes the weight, it is the one under which the validation text is most probable. That text is the
private one that the Transformer is validated on, so one number is learned from private text.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from math import exp

from tasks.errors import ParameterError
from tasks.language_model.downstream_model import KIND_SECTION, section_of_kind
from tasks.language_model.encoded_text import EncodedText, encode_text, marker_use_of
from tasks.language_model.kind_settings import NgramSettings
from tasks.language_model.marker_warning import warn_in_report, warn_user
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.ngram.backoff_model import BackoffModel
from tasks.language_model.ngram.folder import KIND, load, save_adapted, save_new
from tasks.language_model.ngram.kneser_ney import Discounts, estimate
from tasks.language_model.ngram.mixture import NgramMixture, weight_of_first
from tasks.language_model.setting_options import overridden
from tasks.language_model.vocabulary import Vocabulary, read_vocabulary
from tasks.parameters.parameter_file import read_sections
from tasks.records.cell import Cell, cell_of
from tasks.records.stage_report import StageReport, recorded_stage
from tasks.settings.checks import as_plain, check_settings

_SECTION = section_of_kind(KIND)


def pretrain(arguments: argparse.Namespace) -> None:
    """Estimate the generic model, write it and the report, and print one line."""
    settings = _settings(arguments)
    check_replaceable(arguments.output)
    with recorded_stage(
        "pretrain",
        arguments.report,
        cell=Cell().as_dict(),
        parameters={KIND_SECTION: KIND, _SECTION: as_plain(settings)},
        inputs=[path for path in (arguments.vocabulary, arguments.text, arguments.valid) if path],
        outputs=[arguments.output],
    ) as report:
        vocabulary = read_vocabulary(arguments.vocabulary)
        text = encode_text(arguments.text, vocabulary)
        valid = encode_text(arguments.valid, vocabulary) if arguments.valid else None
        started = time.perf_counter()
        model, discounts = estimate(text, settings.order, len(vocabulary))
        seconds = time.perf_counter() - started
        save_new(arguments.output, model, vocabulary)
        loss = NgramMixture([model], [1.0]).mean_loss(valid) if valid else None
        _measure(report, model, discounts, text, vocabulary, seconds)
        report.measure(curve=_curve([loss]))
    _say("pretrain", arguments.output, model, text, [loss], None)


def adapt(arguments: argparse.Namespace) -> None:
    """Estimate a model of the text, mix it with that of ``--model``, write both and the report, and print one line.

    Raises ``ParameterError`` where neither a setting nor a validation text says the weight.
    """
    settings = _settings(arguments)
    check_replaceable(arguments.output)
    markers = arguments.markers or marker_use_of(arguments.method)
    cell = cell_of(arguments)
    with recorded_stage(
        "adapt",
        arguments.report,
        cell=cell.as_dict(),
        parameters={KIND_SECTION: KIND, _SECTION: as_plain(settings), "markers": markers},
        seed=cell.seed,
        inputs=[path for path in (arguments.model, arguments.text, arguments.valid) if path],
        outputs=[arguments.output],
    ) as report:
        base, vocabulary = load(arguments.model)
        text = encode_text(arguments.text, vocabulary, markers)
        valid = encode_text(arguments.valid, vocabulary) if arguments.valid else None
        started = time.perf_counter()
        model, discounts = estimate(text, settings.order, len(vocabulary))
        weight, rounds = _weight(settings, model, base, valid)
        seconds = time.perf_counter() - started
        save_adapted(arguments.output, arguments.model, model, weight, vocabulary, private=arguments.private)
        losses: list[float | None] = [None, None]
        if valid is not None:
            mixture = NgramMixture([*base.models, model], [*(w * (1 - weight) for w in base.weights), weight])
            losses = [base.mean_loss(valid), mixture.mean_loss(valid)]
        _measure(report, model, discounts, text, vocabulary, seconds)
        report.measure(marker_use=markers, generic_weight=1 - weight, weight_rounds=rounds, curve=_curve(losses))
        warn_in_report(report, text.marker_like)
    _say("adapt", arguments.output, model, text, losses, 1 - weight)


def _weight(
    settings: NgramSettings, model: BackoffModel, base: NgramMixture, valid: EncodedText | None
) -> tuple[float, int]:
    """The weight of the model of the text, and in how many rounds it was found."""
    if settings.generic_weight is not None:
        return 1 - settings.generic_weight, 0
    if valid is None:
        raise ParameterError(
            "the weight of the generic model is not set and there is no text to find it by; give --generic-weight or "
            "--valid"
        )
    return weight_of_first(model, base, valid)


def _settings(arguments: argparse.Namespace) -> NgramSettings:
    base = read_sections(arguments.params, [_SECTION])[_SECTION] if arguments.params else None
    settings: NgramSettings = check_settings(
        NgramSettings, overridden(arguments, NgramSettings, base), "n-gram options"
    )
    return settings


def _curve(losses: Sequence[float | None]) -> list[dict[str, float]]:
    """The losses before and after as a curve of two points, as training has one."""
    return [
        {"step": step, "epoch": float(step), "valid_loss": loss} for step, loss in enumerate(losses) if loss is not None
    ]


def _measure(
    report: StageReport,
    model: BackoffModel,
    discounts: Sequence[Discounts],
    text: EncodedText,
    vocabulary: Vocabulary,
    seconds: float,
) -> None:
    report.measure(
        order=model.order,
        ngrams={str(length): len(order.keys) for length, order in enumerate(model.orders, start=1)},
        discounts={str(length): list(found.values) for length, found in enumerate(discounts, start=1)},
        train_seconds=round(seconds, 3),
        tokens=int(text.is_target().sum()),
        vocabulary_size=len(vocabulary),
        vocabulary_hash=vocabulary.hash,
        **text.counts(),
    )
    fallen_back = [str(length) for length, found in enumerate(discounts, start=1) if not found.estimated]
    if fallen_back:
        report.warn(
            f"the text is too small to estimate the discounts of order {', '.join(fallen_back)}; fixed ones were used"
        )


def _say(
    name: str,
    output: str,
    model: BackoffModel,
    text: EncodedText,
    losses: Sequence[float | None],
    generic_weight: float | None,
) -> None:
    shown = [f"{exp(loss):.1f}" for loss in losses if loss is not None]
    valid = f"; valid perplexity {' -> '.join(shown)}" if shown else ""
    mixed = "" if generic_weight is None else f", generic weight {generic_weight:.3f}"
    print(
        f"{name}: {text.sentences:,} sentences, {sum(len(order.keys) for order in model.orders):,} n-grams of up to "
        f"{model.order} words{mixed}{valid}; model in {output}",
        file=sys.stderr,
    )
    warn_user(text.marker_like)
