"""The stages ``pretrain`` and ``adapt`` for an n-gram model.

Pretraining estimates the generic model. An adaptation estimates a model of its own text and mixes it with the generic
one. The mixture weight is a setting, or it maximises the likelihood of the validation text. That text is the private
one that the Transformer is validated on, so one number is learned from private text.
"""

import sys
import time
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING

from tasks.errors import ParameterError
from tasks.language_model.encoded_text import EncodedText, encode_text, warn_of_markers
from tasks.language_model.language_factors import exponents_of, factors_of
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.ngram.backoff_model import BackoffModel, NgramMixture, weight_of_first
from tasks.language_model.ngram.folder import load, save_ngrams
from tasks.language_model.ngram.kneser_ney import estimate
from tasks.language_model.settings import NgramSettings
from tasks.language_model.vocabulary import Vocabulary, read_vocabulary
from tasks.records.stage_report import Report

if TYPE_CHECKING:
    from tasks.language_model.adapt import AdaptFiles


def pretrain(
    settings: NgramSettings, text_path: str, vocabulary_path: str, valid_path: str | None, output: str
) -> Report:
    """Estimate the generic model, write it, and print one line of results."""
    check_replaceable(output)
    vocabulary = read_vocabulary(vocabulary_path)
    text = encode_text(text_path, vocabulary)
    return _trained("pretrain", settings, vocabulary, text, valid_path, output)


def adapt(settings: NgramSettings, files: "AdaptFiles") -> Report:
    """Estimate a model of the text, mix it with the model of ``--model``, write both, and print one line of results.

    Raises ``ParameterError`` where neither a setting nor a validation text gives the weight.
    """
    check_replaceable(files.output)
    base, vocabulary = load(files.model)
    text = encode_text(files.input, vocabulary, files.markers)
    report = _trained("adapt", settings, vocabulary, text, files.valid, files.output, (base, files))
    warn_of_markers(report, text.marker_like)
    return report


def _trained(
    name: str,
    settings: NgramSettings,
    vocabulary: Vocabulary,
    text: EncodedText,
    valid_path: str | None,
    output: str,
    adapted: "tuple[NgramMixture, AdaptFiles] | None" = None,
) -> Report:
    """Estimate a model, write its folder, and print one line of results; an ``adapted`` base is mixed with it."""
    valid = encode_text(valid_path, vocabulary) if valid_path else None
    started = time.perf_counter()
    model, discounts = estimate(text, settings.order, len(vocabulary))
    base, mixture, weight, said = None, NgramMixture([model], [1.0]), 1.0, ""
    of_mixture: dict[str, object] = {}
    if adapted is not None:
        base, files = adapted
        # The base's languages belong to another text, so an adapted model counts its own, or has none.
        weight, rounds = _weight(settings, model, replace(base, languages=None), valid)
        mixture = NgramMixture([*base.models, model], [*(w * (1 - weight) for w in base.weights), weight])
        of_mixture = {"marker_use": files.markers, "generic_weight": 1 - weight, "weight_rounds": rounds}
        said = f", generic weight {1 - weight:.3f}"
    languages = factors_of(settings.languages, text, valid, vocabulary, mixture.class_probabilities)
    mixture = replace(mixture, languages=languages)
    seconds = time.perf_counter() - started
    save_ngrams(output, model, vocabulary, languages, adapted and adapted[1].model, weight)
    losses = [] if valid is None else [each.mean_loss(valid) for each in (base, mixture) if each is not None]
    report = Report().measure(
        order=model.order,
        ngrams={str(length): len(order.keys) for length, order in enumerate(model.orders, start=1)},
        discounts={str(length): list(found.values) for length, found in enumerate(discounts, start=1)},
        train_seconds=round(seconds, 3),
        tokens=int(text.is_target().sum()),
        vocabulary_size=len(vocabulary),
        vocabulary_hash=vocabulary.hash,
        **text.counts(),
        **of_mixture,
        curve=[{"step": step, "epoch": float(step), "valid_loss": loss} for step, loss in enumerate(losses)],
        **exponents_of(languages),
    )
    fallen_back = [str(length) for length, found in enumerate(discounts, start=1) if not found.estimated]
    if fallen_back:
        report.warn(
            f"the text is too small to estimate the discounts of order {', '.join(fallen_back)}; fixed ones were used"
        )
    if losses:
        said += f"; valid perplexity {' -> '.join(f'{exp(loss):.1f}' for loss in losses)}"
    print(
        f"{name}: {text.sentences:,} sentences, {sum(len(order.keys) for order in model.orders):,} n-grams of up to "
        f"{model.order} words{said}; model in {output}",
        file=sys.stderr,
    )
    return report


def _weight(
    settings: NgramSettings, model: BackoffModel, base: NgramMixture, valid: EncodedText | None
) -> tuple[float, int]:
    """The weight of the text's model and the number of rounds in which it was found."""
    if settings.generic_weight is not None:
        return 1 - settings.generic_weight, 0
    if valid is None:
        raise ParameterError(
            "the weight of the generic model is not set and there is no validation text to fit it; give "
            "ngram.generic_weight or --valid"
        )
    return weight_of_first(model, base, valid)
