"""Preparation of fillers: training of a masked-LM head, and fine-tuning of masked and causal LMs (paper 3.2, FT).

Packages have sentence encoders, pretrained bodies without a head. The new weights of a head start near a typical
trained one: the transform is the identity, the decoder is tied to the body's word embeddings, and its bias is the log
frequency of words. Head and body are then trained together on generic text.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from tasks.causal_model import load_causal_model
from tasks.corpora.text_lines import read_corpus
from tasks.errors import CorpusError, ModelError
from tasks.files.atomic_file import atomic_folder
from tasks.filling.causal_lm.language_model import CausalLanguageModel, load_filler
from tasks.filling.causal_lm.lora_training import held_out_accuracy, train_lora
from tasks.filling.causal_lm.prompts import INSTRUCTION
from tasks.filling.fillers.filler_folder import CausalFillerRecord, save_filler, write_update
from tasks.filling.fillers.settings import (
    CausalLanguageModelFiller,
    CausalLanguageModelTuning,
    HeadTraining,
    LoraTraining,
    MaskedLanguageModelFiller,
    MaskedLanguageModelTuning,
)
from tasks.filling.fillers.tuning import TuningText, before_and_after
from tasks.filling.masked_lm.loading import headless, load_masked_model
from tasks.filling.masked_lm.marker_scores import check_architecture
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.masked_training import (
    LONGEST_SENTENCE,
    WordMasker,
    accuracy_of_pieces,
    masked_accuracy,
    train_on_masked_words,
)
from tasks.model_source import PACKAGE_PREFIX
from tasks.records.stage_report import Report

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer


def initialise_fresh_weights(
    model: "PreTrainedModel", missing: Sequence[str], piece_counts: np.ndarray, random: np.random.Generator
) -> list[str]:
    """Set the weights that the source lacks, and return their names.

    ``piece_counts``: ``(V,)`` counts of each piece as a word to predict. A square matrix becomes the identity, a bias
    over the vocabulary the log frequencies, and a matrix over the vocabulary the word embeddings. Norms are neutral and
    other biases 0. Other matrices are normal with the model's ``initializer_range``.
    """
    names = []
    embeddings = model.get_input_embeddings().get_parameter("weight")  # (V, H)
    frequencies = (piece_counts + 0.1) / (piece_counts + 0.1).sum()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name not in missing:
                continue
            names.append(name)
            if weight.ndim == 2 and weight.shape[0] == weight.shape[1]:
                weight.copy_(torch.eye(weight.shape[0]))
            elif weight.shape == embeddings.shape:
                weight.copy_(embeddings)
            elif weight.ndim == 1 and len(weight) == len(frequencies):
                weight.copy_(torch.from_numpy(np.log(frequencies)))
            elif weight.ndim == 1:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
            else:
                width = getattr(model.config, "initializer_range", 0.02)
                weight.copy_(torch.from_numpy(random.normal(0.0, width, tuple(weight.shape))))
    return names


def train_head(
    model: "PreTrainedModel",
    tokenizer: "Tokenizer",
    missing: Sequence[str],
    lines: Sequence[str],
    settings: HeadTraining,
    *,
    name: str,
) -> None:
    """Train in place.

    ``missing``: names of the weights that the source lacks. Lines are cut to ``longest_sentence`` or the model's limit.
    Raises ``CorpusError`` if no line has a word to mask, and ``ModelError`` if the loss stops being a number. On one
    machine the result depends on the seed alone.
    """
    random = np.random.default_rng(settings.seed)
    _, masker = _checked(model, tokenizer, name)
    sentences = masker.sentences(lines, settings, random)
    counts = np.zeros(model.config.vocab_size)  # of each piece as a word that can be masked
    for sentence in sentences:
        pieces = np.array([sentence])
        np.add.at(counts, pieces[masker.maskable(pieces)], 1)
    fresh = initialise_fresh_weights(model, missing, counts, random)
    # The word embeddings are frozen: most rows would hardly be trained, and their gradient takes half of a step's time.
    model.get_input_embeddings().weight.requires_grad_("embeddings" in fresh)
    head = [weight for name, weight in model.named_parameters() if name in fresh]
    known = set(map(id, head))
    body = [weight for weight in model.parameters() if id(weight) not in known and weight.requires_grad]
    if settings.body_learning_rate == 0:
        for weight in body:
            weight.requires_grad_(False)
        body = []
    rates = ((head, settings.learning_rate), (body, settings.body_learning_rate))
    groups = [{"params": weights, "lr": rate} for weights, rate in rates if weights]
    remedy = "lower learning_rate or body_learning_rate"
    train_on_masked_words(model, masker, sentences, settings, groups, random, remedy=remedy)


def prepare_masked_filler(
    settings: MaskedLanguageModelFiller, text: str | None, valid: str | None, output: str, report: Report
) -> None:
    """Load, train a head if the settings have ``train_head``, write the folder, and test on held-out text.

    The trained model of a package is written as an update. Raises ``ModelError`` if the model has no head and gets
    none.
    """
    held_out, training, name = read_corpus(valid) if valid else None, settings.train_head, settings.model
    started = time.perf_counter()
    model, tokenizer, missing = load_masked_model(name)
    # Check for a mask token before minutes of training.
    MaskedLanguageModel(model, tokenizer, name)
    if training and text:
        train_head(model, tokenizer, missing, read_corpus(text), training, name=name)
        report.measure(steps=training.steps, training_seconds=round(time.perf_counter() - started, 3))
    elif missing:
        raise headless("model", name, missing)
    report.measure(parameters=_parameters_of(model))
    if training and name.startswith(PACKAGE_PREFIX):
        base, _, fresh = load_masked_model(name)
        with atomic_folder(output) as folder:
            write_update(model, base, fresh, name, folder)
        model, tokenizer, _ = load_masked_model(output)
    else:
        save_filler(model, tokenizer, output)
    if held_out:
        report.measure(**masked_accuracy(model, tokenizer, held_out, name=name))


def tune_masked_filler(base: str, text: TuningText, settings: MaskedLanguageModelTuning, output: str) -> dict[str, Any]:
    """Tune body and head, write the filler's folder, and return the measurements.

    The word embeddings, also the head's decoder, are frozen: most rows would hardly be trained. Raises ``ModelError``
    if the base cannot be loaded or has no head, or if the loss stops being a number. Raises ``CorpusError`` if no
    sentence has a word to mask.
    """
    model, tokenizer, missing = load_masked_model(base)
    if missing:
        raise headless("base", base, missing)
    random = np.random.default_rng(settings.seed)
    language_model, masker = _checked(model, tokenizer, base)
    room = min(language_model.room, LONGEST_SENTENCE)
    encoded = language_model.encode([sentence.texts for sentence in text.held_out])
    whole = [[*language_model.prefix, *pieces[:room], *language_model.suffix] for pieces in encoded]
    held_out = [pieces for pieces in whole if masker.maskable(np.array([pieces])).any()]
    if not held_out:
        raise CorpusError(
            f"none of the {len(text.held_out)} held-out sentences has a word to guess; raise held_out_share, or take a "
            "larger corpus"
        )
    sentences = masker.sentences(text.lines, settings, random)
    before = accuracy_of_pieces(model, masker, held_out, name=base)
    model.get_input_embeddings().weight.requires_grad_(False)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [{"params": weights, "lr": settings.learning_rate}]
    train_on_masked_words(model, masker, sentences, settings, groups, random, remedy="lower learning_rate")
    after = accuracy_of_pieces(model, masker, held_out, name=output)
    save_filler(model, tokenizer, output)
    return {"steps": settings.steps, "parameters": _parameters_of(model), **before_and_after(before, after)}


def _parameters_of(model: "PreTrainedModel") -> int:
    return sum(weight.numel() for weight in model.parameters())


def _checked(model: "PreTrainedModel", tokenizer: "Tokenizer", name: str) -> tuple[MaskedLanguageModel, WordMasker]:
    """The model to encode sentences with, and its masker. Raises ``ModelError`` if the model cannot score a fill."""
    check_architecture(model, name)
    language_model = MaskedLanguageModel(model, tokenizer, name)
    return language_model, WordMasker(language_model)


def prepare_causal_filler(
    settings: CausalLanguageModelFiller, text: str | None, valid: str | None, output: str, report: Report
) -> None:
    """Load, tune if the settings have ``lora``, test on held-out text, and write the folder (safetensors, no pickle).

    The report has the held-out loss and accuracy before (``untuned_...``) and after tuning. Raises ``CorpusError`` if
    the held-out text has no word to guess.
    """
    held_out, lora = read_corpus(valid) if valid else [], settings.lora
    lines = read_corpus(text) if lora and text else []
    model, tokenizer = load_causal_model(settings.model, settings.gguf_file, precision=settings.precision)
    language_model = CausalLanguageModel(model, tokenizer, settings.model)
    record = CausalFillerRecord(precision=settings.precision, base=settings.model, gguf_file=settings.gguf_file)
    found = _tuned(language_model, lines, lora, held_out, record, output)
    if held_out and not found.before:
        raise CorpusError(
            "the validation text has no line with a word to mask and without markers; give other text, or none"
        )
    if lora:
        report.measure(**{f"untuned_{name}": value for name, value in (found.before or {}).items()})
    report.measure(parameters=found.parameters, **found.measured, **found.after or {})


def tune_causal_filler(base: str, text: TuningText, settings: CausalLanguageModelTuning, output: str) -> dict[str, Any]:
    """Tune, write the filler's folder, and return the measurements.

    Held-out sentences with markers are left out, since prompts would have outputs with markers. If no other sentence
    has a word to mask, the held-out figures are ``None``. Raises ``ModelError`` if the base cannot be loaded, has
    only an update, or has no layer for the update. Also raised if the loss stops being a number.
    """
    model, tokenizer, record = load_filler(base)
    if record.base is not None and not settings.merge:
        raise ModelError(
            f"base {base!r} has only an update, and another update needs a base with whole weights; set merge: true "
            "here or for the base"
        )
    language_model = CausalLanguageModel(model, tokenizer, base, instruction=record.instruction)
    held_out = [sentence.texts[0] for sentence in text.held_out if not sentence.slots]
    record = CausalFillerRecord(precision=record.precision, base=base)
    found = _tuned(language_model, text.lines, settings, held_out, record, output)
    return {**found.measured, "parameters": found.parameters, **before_and_after(found.before, found.after)}


class _Tuned(NamedTuple):
    """Figures of a causal filler."""

    parameters: int
    before: dict[str, Any] | None
    """Accuracy at held-out words without the update; ``None`` without such words."""
    after: dict[str, Any] | None
    """The same with the update."""
    measured: dict[str, Any]


def _tuned(
    language_model: CausalLanguageModel,
    lines: Sequence[str],
    settings: LoraTraining | None,
    held_out: Sequence[str],
    record: CausalFillerRecord,
    output: str,
) -> _Tuned:
    """Tune a model if there are settings, and write the folder. ``record``: of a folder with an update alone."""
    model, tokenizer, name = language_model.model, language_model.tokenizer, language_model.name
    parameters, before = _parameters_of(model), held_out_accuracy(language_model, held_out)
    if settings is None:
        save_filler(model, tokenizer, output, CausalFillerRecord(precision=record.precision))
        return _Tuned(parameters, before, before, {})
    started = time.perf_counter()
    written, measured = train_lora(language_model, lines, settings)
    measured["training_seconds"] = round(time.perf_counter() - started, 3)
    record = replace(record, instruction=INSTRUCTION)
    if settings.merge:
        written = model = written.merge_and_unload()
        record = replace(record, base=None, gguf_file=None)
    after = held_out_accuracy(CausalLanguageModel(model, tokenizer, name), held_out)
    save_filler(written, tokenizer, output, record)
    return _Tuned(parameters, before, after, measured)
