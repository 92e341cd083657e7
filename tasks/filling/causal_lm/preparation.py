"""Preparing a causal filler: its weights, tuned or as they are, in a folder that loads fast."""

import json
import time
from pathlib import Path
from typing import Any

from tasks.causal_model import ADAPTER, computing_precision, load_causal_model
from tasks.corpora.text_lines import read_corpus
from tasks.errors import ParameterError
from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder
from tasks.filling.causal_lm.filler_folder import CausalFillerRecord
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.lora_training import held_out_accuracy, train_lora
from tasks.filling.causal_lm.prompt import INSTRUCTION
from tasks.filling.filler_settings import CausalLanguageModelFiller
from tasks.filling.masked_lm.filler_folder import check_filler_folder
from tasks.records.stage_report import StageReport


def prepare_causal_filler(
    settings: CausalLanguageModelFiller, text: str | None, valid: str | None, output: str, report: StageReport
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
    save_causal_filler(written, tokenizer, record, output)


def save_causal_filler(model: Any, tokenizer: Any, record: CausalFillerRecord, path: str) -> None:
    """Write the folder; an earlier one stays until the new one is complete."""
    check_filler_folder(path)
    record = record.moved_to(path)
    with atomic_folder(path) as fresh:
        model.save_pretrained(fresh, safe_serialization=True)
        tokenizer.save_pretrained(fresh)
        record.write(fresh)
        if record.base is not None:
            _name_base(fresh, record.base)
        for file in fresh.iterdir():
            file.chmod(PUBLIC_MODE)


def _name_base(folder: Path, base: str) -> None:
    """Let peft's own files name the base as the record does: they have the place where it was on this machine."""
    (folder / "README.md").unlink(missing_ok=True)
    configuration = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))
    configuration["base_model_name_or_path"] = base
    (folder / ADAPTER).write_text(json.dumps(configuration, indent=2, sort_keys=True) + "\n", encoding="utf-8")
