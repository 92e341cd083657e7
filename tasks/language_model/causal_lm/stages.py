"""The stages ``pretrain`` and ``adapt`` for a causal language model of Hugging Face's.

Pretraining takes the model as it comes, and measures it on the validation text where there is one. An adaptation trains
it on sentences of normalised words, one by one, so that it learns what the perplexity is measured on. It runs in one
process, without checkpoints.
"""

import sys
from math import exp

from tasks.errors import ModelError
from tasks.files.paths_apart import refuse_shared_paths
from tasks.language_model.causal_lm.folder import CausalRecord, add_markers, load, save_adapted, save_reference
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.word_pieces import OpenVocabulary, markers_in
from tasks.language_model.encoded_text import encode_text, warn_of_markers
from tasks.language_model.generic_mixture import check_generic_share, mix_generic_text
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.settings import (
    CausalLanguageModelAdaptation,
    CausalLanguageModelSettings,
    marker_use_of,
)
from tasks.language_model.stage_files import AdaptFiles, PretrainFiles
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.training.stage import TrainingFrame


def pretrain(settings: CausalLanguageModelSettings, files: PretrainFiles, resources: ResourceSettings) -> Report:
    """Write the folder that names the model, and print one line."""
    refuse_shared_paths([("model", settings.model)], [("--output", files.output)], replaced=True)
    check_replaceable(files.output)
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    causal = save_reference(files.output, settings)
    curve = []
    if files.valid:
        from tasks.language_model.causal_lm.training import mean_loss

        vocabulary = OpenVocabulary()
        valid = causal.pieces.of_text(encode_text(files.valid, vocabulary), vocabulary)
        curve = [{"step": 0, "epoch": 0.0, "valid_loss": mean_loss(causal, valid)}]
    parameters = sum(weight.numel() for weight in causal.model.parameters())
    measured = f"; valid perplexity {exp(curve[0]['valid_loss']):.1f}" if curve else ""
    print(
        f"pretrain: {settings.model} as it comes, {parameters:,} parameters{measured}; model in {files.output}",
        file=sys.stderr,
    )
    return Report().measure(
        parameters_count=parameters,
        vocabulary_size=causal.pieces.size,
        vocabulary_hash=causal.pieces.hash,
        curve=curve,
    )


def adapt(
    settings: CausalLanguageModelAdaptation,
    files: AdaptFiles,
    cell: Cell,
    resources: ResourceSettings,
    frame: TrainingFrame,
) -> Report:
    """Train a model further, write it, and print one line.

    Raises ``ModelError`` where the model has an update of low rank already and is to get another.
    """
    from tasks.language_model.causal_lm.training import add_update, train
    from tasks.language_model.training.stage import valid_perplexities
    from tasks.torch_setup import set_up_torch

    how, share = settings.causal_lm.adaptation, settings.adaptation.generic_share
    check_replaceable(files.output)
    check_generic_share(share, files.generic_text)
    markers = files.markers or marker_use_of(cell.method)
    seed = 1 if cell.seed is None else cell.seed
    set_up_torch(resources.threads)
    report = Report(seed=seed)
    vocabulary = OpenVocabulary()
    text = encode_text(files.text, vocabulary, markers)
    mixed = mix_generic_text(text, files.generic_text if share else None, vocabulary, share, seed)
    causal, record = _base(files.model, settings.causal_lm)
    add_markers(causal, [*record.markers, *(m for m in markers_in(text) if m not in record.markers)])
    causal.model.requires_grad_(True)
    if how.lora is not None:
        causal = add_update(causal, how.lora, seed)
    pieces = causal.pieces.of_text(mixed.text, vocabulary)
    valid = None
    if files.valid:
        valid = causal.pieces.of_text(encode_text(files.valid, vocabulary), vocabulary)
    every = frame.curve.every_steps
    with frame.curve.open() as on_log:
        trained = train(causal, pieces, how, seed, valid=valid, log_every_steps=every, on_log=on_log)
    save_adapted(files.output, causal, record, full=how.lora is None, private=files.private)
    report.measure(
        **trained,
        vocabulary_size=causal.pieces.size,
        vocabulary_hash=causal.pieces.hash,
        sentences=text.sentences,
        empty_lines=text.empty_lines,
        words=text.words,
        markers=text.markers,
        marker_use=markers,
        generic_sentences=mixed.generic_sentences,
        generic_targets=mixed.generic_targets,
        threads=resources.threads,
    )
    print(
        f"adapt: {text.sentences:,} sentences, {trained['steps']:,} steps, {trained['tokens']:,} words at "
        f"{trained['tokens_per_second'] or 0:,.0f} a second{valid_perplexities(trained['curve'])}; model in "
        f"{files.output}",
        file=sys.stderr,
    )
    warn_of_markers(report, text.marker_like)
    return report


def _base(model: str, settings: CausalLanguageModelSettings) -> tuple[CausalModel, CausalRecord]:
    """The model to begin with; a file in GGUF and a precision are those of the model that the settings name."""
    own = model == settings.model
    causal, record = load(model, settings.gguf_file if own else None, precision=settings.precision)
    if settings.adaptation.lora is not None and record.adapted == "update":
        raise ModelError(
            f"model folder {model!r} has an update of low rank already; adapt the model that it was made from, or "
            "train every weight with causal_lm.adaptation.lora=null"
        )
    return causal, record
