"""Training a causal language model on a text: every weight, or an update of low rank."""

import math
import time
from typing import Any

import torch

from tasks.causal_model import lower_on_processor, plain_attention, refuse_update_of_shared_weights
from tasks.errors import ModelError
from tasks.language_model.causal_lm.folder import quiet_peft
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.word_pieces import PieceText
from tasks.language_model.settings import CausalAdaptation, LoraAdaptation
from tasks.language_model.transformer.batching import make_batch, shuffled_batches
from tasks.language_model.transformer.windows import divide
from tasks.training.live_curve import Log, log_nothing
from tasks.training.optimiser import rate_factor

_BETAS = (0.9, 0.98)


def add_update(causal: CausalModel, settings: LoraAdaptation, seed: int) -> CausalModel:
    """The model with a fresh update of low rank (LoRA), all that learns besides the embeddings of markers.

    Raises ``ModelError`` where peft cannot place the update, or where it is to stand on a weight that two layers share.
    """
    from peft import LoraConfig, get_peft_model

    configuration = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]
        lora_dropout=settings.dropout,
        target_modules=settings.target_modules or "all-linear",
        trainable_token_indices=sorted(causal.pieces.markers.values()) or None,
        task_type="CAUSAL_LM",
    )
    torch.manual_seed(seed)
    try:
        with quiet_peft():
            tuned = get_peft_model(causal.model, configuration)
    except ValueError as error:
        raise ModelError(
            f"model {causal.name!r}: peft cannot place the update ({' '.join(str(error).split())[:200]}); "
            "name the layers in target_modules"
        ) from None
    refuse_update_of_shared_weights(tuned, causal.name)
    return CausalModel(tuned, causal.pieces, causal.name)


def train(
    causal: CausalModel,
    text: PieceText,
    settings: CausalAdaptation,
    seed: int,
    *,
    valid: PieceText | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
) -> dict[str, Any]:
    """Train the weights that learn, in place; returns what a report says of it.

    The order of the batches and dropout are functions of ``seed``. Losses are in nats a target, a word or a sentence's
    end. Raises ``ModelError`` where the loss is no longer a number.
    """
    from tqdm import tqdm

    windows = divide(text.text, causal.maximum_pieces)
    order = [
        chosen
        for epoch in range(math.ceil(settings.epochs))
        for chosen in _part(shuffled_batches(windows, settings.batch_tokens, seed, epoch), settings.epochs - epoch)
    ]
    weights = [weight for weight in causal.model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=settings.learning_rate, betas=_BETAS, weight_decay=settings.weight_decay)
    device = causal.model.device
    lower = lower_on_processor(causal.model)
    curve: list[dict[str, float]] = []
    pieces = targets = 0
    interval = [0.0, 0]  # sum of losses in nats, targets, since the last point of the curve
    seconds = 0.0

    def log(step: int, values: dict[str, float]) -> None:
        curve.append({"step": step, **values})
        on_log(step, {name: value for name, value in values.items() if name != "epoch"})

    if valid is not None:
        log(0, {"epoch": 0.0, "valid_loss": mean_loss(causal, valid)})
    torch.manual_seed(seed)
    with plain_attention(causal.model):
        for step, chosen in enumerate(tqdm(order, desc="adapt", unit="step", disable=None, leave=False), start=1):
            started = time.perf_counter()
            causal.model.train()
            rate = settings.learning_rate * rate_factor(step - 1, len(order), settings.warmup_share)
            for group in optimiser.param_groups:
                group["lr"] = rate
            batch = make_batch(text.text, text.is_target, windows, chosen)
            columns = batch.positions.numpy() % batch.tokens.shape[1]
            places = windows.first[chosen][batch.rows.numpy()] + columns + 1
            batch = batch.to(device)
            with torch.autocast("cpu", torch.bfloat16, enabled=lower):
                scores = causal.scores(batch)  # (N, V)
            loss = torch.nn.functional.cross_entropy(scores, batch.targets)
            value = loss.item()
            if not math.isfinite(value):
                raise ModelError(
                    f"the training loss is {value!r} at step {step} of {len(order)}; nothing was saved. Give a smaller "
                    f"learning_rate than {settings.learning_rate!r} or a smaller gradient_clip"
                )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, settings.gradient_clip)
            optimiser.step()
            optimiser.zero_grad()
            seconds += time.perf_counter() - started
            words = int(text.is_first[places].sum())
            pieces, targets = pieces + len(places), targets + words
            interval = [interval[0] + value * len(places), interval[1] + words]
            if (step % log_every_steps == 0 or step == len(order)) and interval[1]:
                log(step, {"train_loss": interval[0] / interval[1], "learning_rate": rate})
                interval = [0.0, 0]
    if valid is not None:
        log(len(order), {"epoch": settings.epochs, "valid_loss": mean_loss(causal, valid)})
    causal.model.eval()
    return {
        "steps": len(order),
        "epochs": settings.epochs,
        "tokens": targets,
        "pieces": pieces,
        "train_seconds": round(seconds, 3),
        "tokens_per_second": round(targets / seconds, 1) if seconds else None,
        "trained_parameters": sum(weight.numel() for weight in weights),
        "arithmetic": "bfloat16" if lower else str(causal.model.dtype).removeprefix("torch."),
        "curve": curve,
    }


def mean_loss(causal: CausalModel, text: PieceText) -> float:
    """Nats a target: a word or a sentence's end."""
    counted = text.is_target
    return -float(causal.log_probabilities(text, title="valid").sum()) / int((text.is_first & counted).sum())


def _part(batches: list[Any], share: float) -> list[Any]:
    """The first ``share`` of an epoch's batches, one at least."""
    return batches if share >= 1 else batches[: max(1, round(share * len(batches)))]
