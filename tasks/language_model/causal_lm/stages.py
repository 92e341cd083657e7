"""The stages ``pretrain`` and ``adapt`` for a causal language model of Hugging Face.

Pretraining takes the model unchanged and measures it on a validation text, if there is one. An adaptation trains it on
single sentences of normalised words, the same form that the perplexity is measured on. It runs in one process, without
checkpoints.
"""

import math
import sys
import time
from math import exp
from typing import TYPE_CHECKING, Any

import torch

from tasks.causal_model import lower_on_processor, plain_attention, with_update
from tasks.errors import ModelError
from tasks.files.separate_paths import refuse_shared_paths
from tasks.language_model.causal_lm.folder import add_markers, load, save_adapted, save_reference
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.pieces import markers_in
from tasks.language_model.encoded_text import encode_text, warn_of_markers
from tasks.language_model.learners import MarkedText
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.settings import (
    CausalAdaptation,
    CausalLanguageModelSettings,
    CausalStage,
    LoraAdaptation,
)
from tasks.language_model.transformer.batching import divide, epoch_order, make_batch, target_places
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.training.optimiser import ADAM_BETAS, rate_factor
from tasks.training.stage import Curve, Log, log_nothing
from tasks.training.steps import Steps

if TYPE_CHECKING:
    from tasks.language_model.adapt import AdaptFiles
    from tasks.language_model.pretrain import PretrainFiles


def add_update(causal: CausalModel, settings: LoraAdaptation, seed: int) -> CausalModel:
    """The model with a new low-rank update (LoRA); only the update and the embeddings of markers are trained.

    Raises ``ModelError`` where peft cannot place the update, or a target weight is shared by two layers.
    """
    torch.manual_seed(seed)
    tokens = sorted(causal.pieces.markers.values())
    return causal.with_network(with_update(causal.network, causal.name, settings, tokens=tokens))


def train(
    causal: CausalModel,
    text: MarkedText,
    settings: CausalAdaptation,
    seed: int,
    *,
    valid: MarkedText | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
) -> dict[str, Any]:
    """Train the trainable weights in place; returns the entries of a report.

    The order of the batches and dropout depend on ``seed`` alone. Losses are in nats a target, a word or a sentence
    end. Raises ``ModelError`` where the loss is no longer finite.
    """
    windows = divide(text.text, causal.longest)
    order = [
        chosen
        for epoch in range(math.ceil(settings.epochs))
        for chosen in epoch_order(windows, settings.batch_tokens, seed, epoch, settings.epochs - epoch)
    ]
    weights = [weight for weight in causal.network.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(
        weights, lr=settings.learning_rate, betas=ADAM_BETAS, weight_decay=settings.weight_decay
    )
    device = causal.network.device
    lower = lower_on_processor(causal.network)
    curve: list[dict[str, float]] = []
    counts: list[tuple[int, int]] = []  # pieces and words of each step
    losses: list[float] = []
    logged = 0

    def log(step: int, values: dict[str, float]) -> None:
        curve.append({"step": step, **values})
        on_log(step, {name: value for name, value in values.items() if name != "epoch"})

    if valid is not None:
        log(0, {"epoch": 0.0, "valid_loss": causal.mean_loss(valid)})
    torch.manual_seed(seed)
    causal.network.train()
    batches = iter(order)

    def next_loss() -> torch.Tensor:
        chosen = next(batches)
        batch = make_batch(text.text, text.is_target, windows, chosen)
        places = target_places(batch, windows.first[chosen])
        counts.append((len(places), int(text.is_first[places].sum())))
        batch = batch.to(device)
        with torch.autocast("cpu", torch.bfloat16, enabled=lower):
            scores = causal.next_scores(batch)  # (N, V)
        return torch.nn.functional.cross_entropy(scores, batch.targets)

    def factor(step: int) -> float:
        return rate_factor(step, len(order), settings.warmup_share)

    def after_step(step: int, loss: float) -> None:
        nonlocal logged
        losses.append(loss)
        words = sum(words for _, words in counts[logged:])
        if (step % log_every_steps == 0 or step == len(order)) and words:
            nats = sum(loss * places for loss, (places, _) in zip(losses[logged:], counts[logged:], strict=True))
            log(step, {"train_loss": nats / words, "learning_rate": settings.learning_rate * factor(step - 1)})
            logged = step

    started = time.perf_counter()
    with plain_attention(causal.network):
        rate = settings.learning_rate
        remedy = f"nothing was saved. Give a smaller learning_rate than {rate!r} or a smaller gradient_clip"
        Steps(optimiser, next_loss, factor, remedy, after_step).run(len(order), settings.gradient_clip)
    seconds = time.perf_counter() - started
    if valid is not None:
        log(len(order), {"epoch": settings.epochs, "valid_loss": causal.mean_loss(valid)})
    causal.network.eval()
    pieces, targets = (sum(each) for each in zip(*counts, strict=True))
    return {
        "steps": len(order),
        "epochs": settings.epochs,
        "tokens": targets,
        "pieces": pieces,
        "train_seconds": round(seconds, 3),
        "tokens_per_second": round(targets / seconds, 1) if seconds else None,
        "trained_parameters": sum(weight.numel() for weight in weights),
        "arithmetic": "bfloat16" if lower else str(causal.network.dtype).removeprefix("torch."),
        "curve": curve,
    }


def pretrain(settings: CausalLanguageModelSettings, files: "PretrainFiles", resources: ResourceSettings) -> Report:
    """Write the folder that names the model, and print one line of results."""
    refuse_shared_paths([("model", settings.model)], [("--output", files.output)], replaced=True)
    check_replaceable(files.output)
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    causal = save_reference(files.output, settings)
    curve = []
    if files.valid:
        valid = causal.marked(encode_text(files.valid, causal.vocabulary))
        curve = [{"step": 0, "epoch": 0.0, "valid_loss": causal.mean_loss(valid)}]
    parameters = sum(weight.numel() for weight in causal.network.parameters())
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
    settings: CausalStage,
    files: "AdaptFiles",
    cell: Cell,
    resources: ResourceSettings,
    curve: Curve,
) -> Report:
    """Train a model further, write it, and print one line of results.

    Raises ``ModelError`` where the model already has a low-rank update and would get another.
    """
    from tasks.language_model.training import valid_perplexities
    from tasks.torch_setup import set_up_torch

    how = settings.causal_lm.adaptation
    check_replaceable(files.output)
    markers = files.markers
    seed = 1 if cell.seed is None else cell.seed
    set_up_torch(resources.threads)
    report = Report(seed=seed)
    causal = _base(files.model, settings.causal_lm)
    text = encode_text(files.input, causal.vocabulary, markers)
    known = causal.record.markers if causal.record else []
    add_markers(causal, [*known, *(marker for marker in markers_in(text) if marker not in known)])
    causal.network.requires_grad_(True)
    if how.lora is not None:
        causal = add_update(causal, how.lora, seed)
    pieces = causal.marked(text)
    valid = causal.marked(encode_text(files.valid, causal.vocabulary)) if files.valid else None
    every = curve.every_steps
    with curve.open() as on_log:
        trained = train(causal, pieces, how, seed, valid=valid, log_every_steps=every, on_log=on_log)
    save_adapted(files.output, causal, full=how.lora is None, merged=files.merged)
    report.measure(
        **trained,
        vocabulary_size=causal.pieces.size,
        vocabulary_hash=causal.pieces.hash,
        **text.counts(),
        marker_use=markers,
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


def _base(model: str, settings: CausalLanguageModelSettings) -> CausalModel:
    """Load the model to start from; ``gguf_file`` and ``precision`` apply to the model that the settings name."""
    own = model == settings.model
    causal = load(model, settings.gguf_file if own else None, precision=settings.precision)
    if settings.adaptation.lora is not None and causal.record and causal.record.adapted == "update":
        raise ModelError(
            f"model folder {model!r} has an update of low rank already; adapt the model that it was made from, or "
            "train every weight with causal_lm.adaptation.lora=null"
        )
    return causal
