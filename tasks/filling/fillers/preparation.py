"""Training a masked-LM head on a pretrained body that comes without one.

Packages bring sentence encoders: real pretrained bodies, but no head. The fresh weights start where a head may well end
up: the transform as the identity, the decoder tied to the body's own word embeddings, its bias at the words' log
frequency. Then head and body learn together, each at its own rate, from generic text.

Fine-tuning a masked LM on in-domain text with the masked-LM task (paper 3.2, FT).

Preparing a causal filler: its weights, tuned or as they are, in a folder that loads fast.

Fine-tuning a causal LM with LoRA on in-domain text (paper 3.2): prompts of instruction, input and output.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tasks.causal_model import computing_precision, load_causal_model
from tasks.corpora.text_lines import read_corpus
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.filling.causal_lm.language_model import INSTRUCTION, CausalLanguageModel, load_filler
from tasks.filling.causal_lm.lora_training import held_out_accuracy, held_out_prompts, train_lora
from tasks.filling.fillers.filler_folder import CausalFillerRecord, save_filler
from tasks.filling.fillers.settings import (
    CausalLanguageModelFiller,
    CausalLanguageModelTuning,
    HeadTraining,
    MaskedLanguageModelTuning,
)
from tasks.filling.fillers.tuning import TuningText, before_and_after
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.marker_scores import check_scores
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, headless, load_masked_model
from tasks.filling.masked_lm.masked_training import (
    LONGEST_SENTENCE,
    WordMasker,
    accuracy_of_pieces,
    enough_lines,
    train_on_masked_words,
)
from tasks.filling.masked_sentence import MaskedSentence
from tasks.records.stage_report import Report

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer


def initialise_fresh_weights(
    model: "PreTrainedModel", missing: Sequence[str], piece_counts: np.ndarray, random: np.random.Generator
) -> list[str]:
    """Set the weights that the source did not hold, and return their names.

    ``piece_counts``: ``(V,)`` how often each piece is a word to predict. A square matrix becomes the identity, a bias
    over the vocabulary the log frequencies, a matrix over the vocabulary the word embeddings; norms are neutral and
    other biases 0. Any other matrix is drawn from a normal distribution of the model's own width.
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
    """Train in place; returns what was measured: fresh weights, steps, pieces, the loss curve in nats per masked word.

    ``missing``: names of the weights that the source does not hold. Lines are cut to what the model takes at once, if
    not to less. Raises ``CorpusError`` where no line has a word to mask and ``ModelError`` where the loss stops being a
    number. The result depends on the seed alone, on one machine.
    """
    random = np.random.default_rng(settings.seed)
    masker = WordMasker(tokenizer, candidate_words(tokenizer, name=name), model.config.vocab_size)
    language_model = MaskedLanguageModel(model, tokenizer, name)
    check_scores(language_model)
    longest = min(settings.longest_sentence, language_model.frame.longest)
    sentences = masker.encode(enough_lines(lines, settings, longest, random), longest)
    if not sentences:
        raise CorpusError("the training text has no line with a word to mask")
    fresh = initialise_fresh_weights(model, missing, _target_counts(masker, sentences, model.config.vocab_size), random)
    measured = train_on_masked_words(
        model,
        masker,
        sentences,
        settings,
        _groups(model, fresh, settings),
        random,
        remedy="lower learning_rate or body_learning_rate",
    )
    return {
        "fresh_weights": fresh,
        "fresh_parameters": sum(w.numel() for n, w in model.named_parameters() if n in fresh),
        **measured,
    }


def _target_counts(masker: WordMasker, sentences: Sequence[Sequence[int]], vocabulary_size: int) -> np.ndarray:
    """``(V,)`` how often each piece is a word that could be masked."""
    counts = np.zeros(vocabulary_size)
    for sentence in sentences:
        pieces = np.array([sentence])
        np.add.at(counts, pieces[masker.maskable(pieces)], 1)
    return counts


def _groups(model: "PreTrainedModel", fresh: Sequence[str], settings: HeadTraining) -> list[dict[str, Any]]:
    """Head and body, each with its peak rate. The word embeddings stay as they are: most of their rows would hardly be
    seen, and their gradient is half the cost of a step."""
    model.get_input_embeddings().weight.requires_grad_("embeddings" in fresh)
    head = [weight for name, weight in model.named_parameters() if name in fresh]
    known = set(map(id, head))
    body = [weight for weight in model.parameters() if id(weight) not in known and weight.requires_grad]
    if settings.body_learning_rate == 0:
        for weight in body:
            weight.requires_grad_(False)
        body = []
    return [
        {"params": weights, "lr": rate}
        for weights, rate in ((head, settings.learning_rate), (body, settings.body_learning_rate))
        if weights
    ]


def tune_masked_filler(base: str, text: TuningText, settings: MaskedLanguageModelTuning, output: str) -> dict[str, Any]:
    """Tune body and head, write the filler's folder, and return what was measured.

    The word embeddings, which are the head's decoder too, stay as they are: most of their rows would hardly be seen.
    Raises ``ModelError`` where the base cannot be loaded or has no head, or where the loss stops being a number, and
    ``CorpusError`` where no sentence has a word to mask.
    """
    model, tokenizer, missing = load_masked_model(base)
    if missing:
        raise headless("base", base, missing)
    language_model = MaskedLanguageModel(model, tokenizer, base)
    check_scores(language_model)
    random = np.random.default_rng(settings.seed)
    masker = WordMasker(tokenizer, candidate_words(tokenizer, name=base), model.config.vocab_size)
    held_out = _pieces(language_model, masker, text.held_out)
    longest = min(settings.longest_sentence, language_model.frame.longest)
    sentences = masker.encode(enough_lines(text.lines, settings, longest, random), longest)
    if not sentences:
        raise CorpusError("the text to tune on has no sentence with a word to mask")
    before = accuracy_of_pieces(model, masker, held_out, name=base)
    model.get_input_embeddings().weight.requires_grad_(False)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    measured = train_on_masked_words(
        model,
        masker,
        sentences,
        settings,
        [{"params": weights, "lr": settings.learning_rate}],
        random,
        remedy="lower learning_rate",
        name="tuning",
    )
    after = accuracy_of_pieces(model, masker, held_out, name=output)
    save_filler(model, tokenizer, output)
    parameters = sum(weight.numel() for weight in model.parameters())
    tuned = sum(weight.numel() for weight in weights)
    return {**measured, "parameters": parameters, "tuned_parameters": tuned, **before_and_after(before, after)}


def _pieces(
    language_model: MaskedLanguageModel, masker: WordMasker, sentences: Sequence[MaskedSentence]
) -> list[list[int]]:
    """The held-out sentences that have a word to mask, mask tokens in their slots, special pieces at their ends."""
    frame = language_model.frame
    room = min(frame.room, LONGEST_SENTENCE)
    encoded = language_model.encode([sentence.texts for sentence in sentences])
    whole = [[*frame.prefix, *pieces[:room], *frame.suffix] for pieces in encoded]
    found = [pieces for pieces in whole if masker.maskable(np.array([pieces])).any()]
    if not found:
        raise CorpusError(
            f"none of the {len(sentences)} held-out sentences has a word to guess; raise held_out_share, or take a "
            "larger corpus"
        )
    return found


def prepare_causal_filler(
    settings: CausalLanguageModelFiller, text: str | None, valid: str | None, output: str, report: Report
) -> None:
    """Load, tune if asked for, test on held-out text, and write the folder (safetensors, no pickle).

    The report says the held-out loss and accuracy before (``untuned_...``) and after tuning. A model in 4 bits cannot
    be written, nor can an update be added to it: its folder holds the update alone and names the base.
    """
    held_out = read_corpus(valid) if valid else None
    lines = read_corpus(text) if settings.lora and text else None
    if settings.precision == "4bit" and (settings.lora is None or settings.lora.merge):
        raise ParameterError("precision '4bit' cannot be written as whole weights; use lora with merge: false")
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
    """Tune, write the filler's folder, and return what was measured.

    Held-out sentences with markers are left out: the output of a prompt would be one with markers. Where no other has a
    word to mask, the held-out numbers are ``None``. Raises ``ModelError`` where the base cannot be loaded, is in 4
    bits, or has no layer for the update, and where the loss stops being a number.
    """
    model, tokenizer, record = load_filler(base)
    if record.precision == "4bit":
        raise ModelError(
            f"base {base!r} is in 4 bits, and another update cannot be added to its weights; make the base with "
            "precision: auto or bfloat16"
        )
    if record.base is not None and not settings.merge:
        raise ModelError(
            f"base {base!r} holds an update alone, so the next one cannot name a base with whole weights; set "
            "merge: true here or for the base"
        )
    language_model = CausalLanguageModel(model, tokenizer, base, instruction=record.instruction)
    held_out = [sentence.texts[0] for sentence in text.held_out if not sentence.slots]
    testable = bool(held_out_prompts(language_model, held_out))
    before = held_out_accuracy(language_model, held_out) if testable else None
    # Behind the tuning the update may be among them.
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
