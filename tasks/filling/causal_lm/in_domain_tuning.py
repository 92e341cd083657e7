"""Fine-tuning a causal LM with LoRA on in-domain text (paper 3.2): prompts of instruction, input and output."""

from typing import Any

from tasks.errors import ModelError
from tasks.filling.causal_lm.filler_folder import CausalFillerRecord
from tasks.filling.causal_lm.language_model import CausalLanguageModel, load_filler
from tasks.filling.causal_lm.lora_training import held_out_accuracy, held_out_prompts, train_lora
from tasks.filling.causal_lm.preparation import save_causal_filler
from tasks.filling.causal_lm.prompt import INSTRUCTION
from tasks.filling.training.tuning_settings import CausalLanguageModelTuning
from tasks.filling.training.tuning_steps import before_and_after
from tasks.filling.training.tuning_text import TuningText


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
    save_causal_filler(written, tokenizer, CausalFillerRecord(INSTRUCTION, record.precision, named), output)
    measured["sentences_seen"] = measured.pop("sentences")
    return {**measured, "parameters": parameters, **before_and_after(before, after)}
