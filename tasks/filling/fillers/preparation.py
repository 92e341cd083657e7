"""Preparation of fillers: training of a masked-LM head, and fine-tuning of masked and causal LMs (paper 3.2, FT).

``train_head``: packages have sentence encoders, pretrained bodies without a head. The new weights start near a typical
trained head. The transform is the identity, the decoder is tied to the body's word embeddings, and its bias is the log
frequency of words. Head and body are then trained together on generic text, at separate rates.

``prepare_masked_filler`` and ``prepare_causal_filler`` write a filler to a folder, trained or unchanged.
``tune_masked_filler`` fine-tunes a masked LM on in-domain text with the masked-LM task. ``tune_causal_filler`` tunes a
causal LM with LoRA on prompts of instruction, input and output.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tasks.causal_model import computing_precision, load_causal_model
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
) -> dict[str, Any]:
    """Train in place; returns the new weights, steps, pieces, and the loss curve in nats per masked word.

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
    measured = train_on_masked_words(model, masker, sentences, settings, groups, random, remedy=remedy)
    return {"fresh_weights": fresh, "fresh_parameters": sum(weight.numel() for weight in head), **measured}


def prepare_masked_filler(
    settings: MaskedLanguageModelFiller, text: str | None, valid: str | None, output: str, report: Report
) -> None:
    """Load, train a head if the settings have ``train_head``, write the folder, and test on held-out text.

    The trained model of a package is written as an update. Raises ``ModelError`` if the model has no head and gets
    none.
    """
    held_out = read_corpus(valid) if valid else None
    started = time.perf_counter()
    model, tokenizer, missing = load_masked_model(settings.model)
    # Check for a mask token before minutes of training.
    MaskedLanguageModel(model, tokenizer, settings.model)
    if settings.train_head and text:
        report.measure(
            **train_head(model, tokenizer, missing, read_corpus(text), settings.train_head, name=settings.model),
            training_seconds=round(time.perf_counter() - started, 3),
        )
    elif missing:
        raise ModelError(
            f"model {settings.model!r} has no masked-LM head ({len(missing)} weights are missing, such as "
            f"{missing[0]!r}); set train_head (--set 'train_head={{}}')"
        )
    report.measure(parameters=sum(weight.numel() for weight in model.parameters()))
    if settings.train_head and settings.model.startswith(PACKAGE_PREFIX):
        base, _, fresh = load_masked_model(settings.model)
        with atomic_folder(output) as folder:
            write_update(model, base, fresh, settings.model, folder)
        model, tokenizer, _ = load_masked_model(output)
    else:
        save_filler(model, tokenizer, output)
    if held_out:
        report.measure(**masked_accuracy(model, tokenizer, held_out, name=settings.model))


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
    frame = language_model.frame
    room = min(frame.room, LONGEST_SENTENCE)
    encoded = language_model.encode([sentence.texts for sentence in text.held_out])
    whole = [[*frame.prefix, *pieces[:room], *frame.suffix] for pieces in encoded]
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
    measured = train_on_masked_words(model, masker, sentences, settings, groups, random, remedy="lower learning_rate")
    after = accuracy_of_pieces(model, masker, held_out, name=output)
    save_filler(model, tokenizer, output)
    parameters = sum(weight.numel() for weight in model.parameters())
    tuned = sum(weight.numel() for weight in weights)
    return {**measured, "parameters": parameters, "tuned_parameters": tuned, **before_and_after(before, after)}


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
    held_out = read_corpus(valid) if valid else []
    lines = read_corpus(text) if settings.lora and text else None
    model, tokenizer = load_causal_model(settings.model, settings.gguf_file, precision=settings.precision)
    language_model = CausalLanguageModel(model, tokenizer, settings.model)
    report.measure(
        parameters=sum(weight.numel() for weight in model.parameters()),
        computed_in=computing_precision(settings.precision),
    )
    written, base, accuracy = model, None, held_out_accuracy(language_model, held_out)
    if held_out and not accuracy:
        raise CorpusError(
            "the validation text has no line with a word to mask and without markers; give other text, or none"
        )
    if settings.lora is not None and lines is not None:
        report.measure(**{f"untuned_{name}": value for name, value in (accuracy or {}).items()})
        started = time.perf_counter()
        written, language_model, measured = _tuned(language_model, lines, settings.lora)
        report.measure(**measured, training_seconds=round(time.perf_counter() - started, 3))
        base = None if settings.lora.merge else settings.model
        accuracy = held_out_accuracy(language_model, held_out)
    report.measure(**accuracy or {})
    record = CausalFillerRecord(
        INSTRUCTION if settings.lora else None, settings.precision, base, settings.gguf_file if base else None
    )
    save_filler(written, tokenizer, output, record)


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
    before = held_out_accuracy(language_model, held_out)
    # Count now: after the tuning the parameters may include the update.
    parameters = sum(weight.numel() for weight in model.parameters())
    written, language_model, measured = _tuned(language_model, text.lines, settings)
    after = held_out_accuracy(language_model, held_out)
    named = None if settings.merge else base
    save_filler(written, tokenizer, output, CausalFillerRecord(INSTRUCTION, record.precision, named))
    measured["sentences_seen"] = measured.pop("sentences")
    return {**measured, "parameters": parameters, **before_and_after(before, after)}


def _tuned(
    language_model: CausalLanguageModel, lines: Sequence[str], settings: LoraTraining
) -> tuple[Any, CausalLanguageModel, dict[str, Any]]:
    """The model to write, merged or with its update, the language model with the update, and the measurements."""
    written, measured = train_lora(language_model, lines, settings)
    model = language_model.model
    if settings.merge:
        written = model = written.merge_and_unload()
    return written, CausalLanguageModel(model, language_model.tokenizer, language_model.name), measured
