"""Train a language model further on a text (adaptation).

The text is plain (raw or filled), or masked. In masked text, --markers says how a marker such as
[MASK] is treated:

  --markers token    The model learns to predict it like any word (the paper's Baseline0).
  --markers ignore   The model reads it but never predicts it (Baseline1).
  --markers remove   It is removed from its line (plain redaction).
  --markers drop     Its line is left out.

The kind of the model decides how it is trained:

- A Transformer is trained further. It may be trained with differential privacy (DP-SGD). Epsilon
  then holds for each line or document of the text, whatever the text is.
- A causal language model of Hugging Face gets a low-rank update (LoRA). The setting
  causal_lm.adaptation.lora=null trains it in full.
- An n-gram model is mixed with an n-gram model of the text. The weight is the one under which the
  validation text is most probable.

examples:
  palimpsest adapt --model models/pretrained --input filled.txt --output models/adapted
  palimpsest adapt --model models/pretrained --input filled.txt --output models/adapted --set epochs=2
  palimpsest adapt --model models/pretrained --input raw.txt --output models/adapted --set epsilon=8
  palimpsest adapt --model gpt2 --input filled.txt --output models/adapted --set epochs=3
"""

from functools import partial
from typing import Annotated

from tasks.corpora.text_lines import read_lines, refuse_empty
from tasks.corpora.words import lines_found
from tasks.errors import ModelError
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.settings import AdaptSettings, CausalStage, MarkerUse, NgramStage, TransformerAdaptation
from tasks.options import READ, READ_MODEL
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.training.stage import NO_CURVE, Curve, TrainedFolder, TrainingCommand

SUMMARY = "train a language model further on raw, masked or filled text"


class AdaptFiles(TrainedFolder):
    """Files that an adaptation reads and writes."""

    model: Annotated[str, READ_MODEL]
    """model to start from: a folder, or a causal language model by its hub name or as package:NAME/FOLDER"""
    input: Annotated[str, READ]
    """text to train on, one sentence a line"""
    valid: Annotated[str | None, READ] = None
    """plain text to measure progress on; the result depends on it with patience, and for an n-gram model"""
    markers: MarkerUse = "none"
    """treatment of markers in the text: none (the text is plain), token, ignore, remove or drop"""
    documents: Annotated[str | None, READ] = None
    """document of each line, by any name, one a line; read with adaptation.private.unit=document only"""
    merged: bool = False
    """write a causal model whole with its tokenizer, for other tools, instead of an update of its base"""


def adapt(
    settings: AdaptSettings, files: AdaptFiles, cell: Cell, resources: ResourceSettings, curve: Curve = NO_CURVE
) -> Report:
    """Read a model, train it further and write it to the output folder.

    Raises ``ModelError`` where the model does not exist, or is of another kind than the settings.
    """
    kind = kind_of_model(files.model)
    if kind != settings.kind:
        raise ModelError(
            f"model {files.model!r} is of kind {kind!r}, and language_model.kind is {settings.kind!r}; run "
            "'palimpsest pretrain' again, or change the setting"
        )
    refuse_empty(files.input)
    report = _adapt(settings, files, cell, resources, curve)
    if files.valid:
        found = lines_found(read_lines(files.valid), read_lines(files.input))
        if shared := sum(found):
            report.warn(
                f"{shared:,} of {len(found):,} lines of --valid are in --input too: a loss on them says little about "
                "other text"
            )
    return report


def _adapt(settings: AdaptSettings, files: AdaptFiles, cell: Cell, resources: ResourceSettings, curve: Curve) -> Report:
    match settings:
        case NgramStage():
            from tasks.language_model.ngram.stages import adapt as adapt_ngram

            return adapt_ngram(settings.ngram, files)
        case CausalStage():
            from tasks.language_model.causal_lm.stages import adapt as adapt_causal_lm

            return adapt_causal_lm(settings, files, cell, resources, curve)
    return _adapt_transformer(settings, files, cell, resources, curve)


def _adapt_transformer(
    settings: TransformerAdaptation, files: AdaptFiles, cell: Cell, resources: ResourceSettings, curve: Curve
) -> Report:
    from tasks.language_model.training import train_transformer
    from tasks.language_model.transformer.model import load_model

    adaptation = settings.adaptation
    seed = adaptation.seed if cell.seed is None else cell.seed
    if adaptation.private is not None:
        from tasks.language_model.dp_sgd.training import adapt as adapt_privately

        return adapt_privately(adaptation, files, seed, resources, curve)
    return train_transformer(
        "adapt",
        adaptation.model_copy(update={"seed": seed}),
        partial(load_model, files.model),
        (files.input, files.valid),
        files,
        resources,
        curve,
        markers=files.markers,
        languages=settings.transformer.languages,
    )


def kind_of_files(files: AdaptFiles) -> dict[str, object]:
    """The default settings that the model folder implies: its kind."""
    kind = kind_of_model(files.model)
    return {"kind": kind, **({"causal_lm": {"model": files.model}} if kind == "causal_lm" else {})}


COMMAND = TrainingCommand(
    name="adapt",
    stage=adapt,
    settings=AdaptSettings,
    files=AdaptFiles,
    section="language_model",
    parts=("adaptation", "kind", "{kind}"),
    cell=("seed",),
    labels=("dataset", "technique", "filler", "method"),
    seed=None,
    defaults=kind_of_files,
)
