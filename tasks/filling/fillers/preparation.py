"""Preparation of fillers: training of a masked-LM head, and fine-tuning of masked and causal LMs (paper 3.2, FT).

``train_head``: packages have sentence encoders, pretrained bodies without a head. The new weights start near a typical
trained head. The transform is the identity, the decoder is tied to the body's word embeddings, and its bias is the log
frequency of words. Head and body are then trained together on generic text, at separate rates.

``tune_masked_filler`` fine-tunes a masked LM on in-domain text with the masked-LM task. ``tune_causal_filler`` tunes a
causal LM with LoRA on prompts of instruction, input and output. ``prepare_causal_filler`` writes a causal filler, tuned
or unchanged, to a folder that loads fast.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tasks.causal_model import computing_precision, load_causal_model
from tasks.corpora.text_lines import read_corpus
from tasks.errors import CorpusError, ModelError
from tasks.filling.causal_lm.language_model import CausalLanguageModel, load_filler
from tasks.filling.causal_lm.lora_training import held_out_accuracy, held_out_prompts, train_lora
from tasks.filling.causal_lm.prompts import INSTRUCTION
from tasks.filling.fillers.filler_folder import CausalFillerRecord, save_filler
from tasks.filling.fillers.settings import (
    CausalLanguageModelFiller,
    CausalLanguageModelTuning,
    HeadTraining,
    MaskedLanguageModelTuning,
)
from tasks.filling.fillers.tuning import TuningText, before_and_after
from tasks.filling.masked_lm.loading import headless, load_masked_model
from tasks.filling.masked_lm.marker_scores import check_scores
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.masked_training import (
    LONGEST_SENTENCE,
    WordMasker,
    accuracy_of_pieces,
    train_on_masked_words,
)
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
    if not sentences:
        raise CorpusError("the training text has no line with a word to mask")
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
    if not sentences:
        raise CorpusError("the text to tune on has no sentence with a word to mask")
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
    language_model = MaskedLanguageModel(model, tokenizer, name)
    check_scores(language_model)
    return language_model, WordMasker(language_model)


def prepare_causal_filler(
    settings: CausalLanguageModelFiller, text: str | None, valid: str | None, output: str, report: Report
) -> None:
    """Load, tune if the settings have ``lora``, test on held-out text, and write the folder (safetensors, no pickle).

    The report has the held-out loss and accuracy before (``untuned_...``) and after tuning.
    """
    held_out = read_corpus(valid) if valid else None
    lines = read_corpus(text) if settings.lora and text else None
    model, tokenizer = load_causal_model(settings.model, settings.gguf_file, precision=settings.precision)
    language_model = CausalLanguageModel(model, tokenizer, settings.model)
    report.measure(
        parameters=sum(weight.numel() for weight in model.parameters()),
        computed_in=computing_precision(settings.precision),
    )
    written = model
    base = gguf_file = None
    if settings.lora is not None and lines is not None:
        if held_out:
            report.measure(**{f"untuned_{k}": v for k, v in held_out_accuracy(language_model, held_out).items()})
        started = time.perf_counter()
        tuned, measured = train_lora(language_model, lines, settings.lora)
        report.measure(**measured, training_seconds=round(time.perf_counter() - started, 3))
        if settings.lora.merge:
            written = tuned.merge_and_unload()
        else:
            written, base, gguf_file = tuned, settings.model, settings.gguf_file
        language_model = CausalLanguageModel(written if settings.lora.merge else model, tokenizer, settings.model)
    if held_out:
        report.measure(**held_out_accuracy(language_model, held_out))
    record = CausalFillerRecord(INSTRUCTION if settings.lora else None, settings.precision, base, gguf_file)
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
    testable = bool(held_out_prompts(language_model, held_out))
    before = held_out_accuracy(language_model, held_out) if testable else None
    # Count now: after the tuning the parameters may include the update.
    parameters = sum(weight.numel() for weight in model.parameters())
    tuned, measured = train_lora(language_model, text.lines, settings)
    written = tuned.merge_and_unload() if settings.merge else tuned
    after = None
    if testable:
        inner = written if settings.merge else model
        after = held_out_accuracy(CausalLanguageModel(inner, tokenizer, output), held_out)
    named = None if settings.merge else base
    save_filler(written, tokenizer, output, CausalFillerRecord(INSTRUCTION, record.precision, named))
    measured["sentences_seen"] = measured.pop("sentences")
    return {**measured, "parameters": parameters, **before_and_after(before, after)}
