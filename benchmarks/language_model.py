"""Training of the word-level language model against ``transformers.Trainer``.

Both sides train one GPT-2 shape with equal weights on equal batches of sentences of similar length, so that little is
padding. The Trainer is not compiled: each new shape takes ``torch.compile`` longer than it saves on a processor.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from time import process_time
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from benchmarks.frame import check_same, speed
from benchmarks.texts import zipf_text
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.training import TextBatches, train
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.torch_setup import has_bfloat16

WARM_STEPS = 4
OURS_BY_PEER = {
    "wte": "embedding", "wpe": "positions", "h.": "blocks.", "ln_f": "final_norm",
    "ln_1": "attention_norm", "attn.c_attn": "attention_input", "attn.c_proj": "attention_output",
    "ln_2": "feed_forward_norm", "mlp.c_fc": "feed_forward_input", "mlp.c_proj": "feed_forward_output",
}  # fmt: skip
"""Names of our parameters by those of GPT-2, whose matrices ``c_`` are transposed."""


@dataclass(frozen=True)
class Size:
    """The size of a model, and how many targets and steps are trained."""

    words: int
    width: int
    layers: int = 3
    heads: int = 4
    maximum_tokens: int = 128
    trained: int = 18_700
    steps: int = 14


SIZES = {
    "20,000 words": Size(20_000, 128),
    "85,000 words": Size(85_000, 256, trained=12_000, steps=9),
    "small": Size(2_000, 32, trained=9_000, steps=6),
}


def run(small: bool) -> list[dict[str, Any]]:
    return [training(name) for name in (("small",) if small else ("20,000 words", "85,000 words"))]


def model_of(size: Size) -> Any:
    """Our model with drawn weights."""
    shape = {key: getattr(size, key) for key in ("layers", "heads", "width", "maximum_tokens")}
    model = TransformerLanguageModel(ArchitectureSettings.model_validate({**shape, "context": "sentence"}), size.words)
    model.initialise(1)
    return model


def peer_of(size: Size, model: Any) -> Any:
    """``GPT2LMHeadModel`` of the same shape, with the weights of ``model``."""
    shape: dict[str, Any] = {"n_embd": size.width, "n_layer": size.layers, "n_head": size.heads}
    plain: dict[str, Any] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    ids: dict[str, Any] = {"vocab_size": size.words, "bos_token_id": 2, "eos_token_id": 3}
    peer: Any = GPT2LMHeadModel(GPT2Config(n_positions=size.maximum_tokens + 1, **ids, **shape, **plain))
    with torch.no_grad():
        for name, weights in peer.transformer.named_parameters():
            ours = model.get_parameter(reduce(lambda text, pair: text.replace(*pair), OURS_BY_PEER.items(), name))
            ours = ours.t() if ours.dim() == 2 and ".c_" in name else ours
            weights[: len(ours)].copy_(ours)
    return peer


def training(name: str) -> dict[str, Any]:
    """The row of one size."""
    ours, peer = (partial(train_side, SIZES[name], side) for side in ("ours", "trainer"))
    first, other = ours(), peer()
    check_same([round(first["loss"], 3)], [round(other["loss"], 3)], "loss of the first step")
    title, targets = f"language model of {name}, training against Trainer", first["targets"]
    return speed(title, targets, "tokens/s", ours, peer, clock=lambda side: side()["seconds"])


def train_side(size: Size, side: str) -> dict[str, float]:
    """Train one side: processor seconds and targets after the warm steps, and the first step's loss."""
    model, text = model_of(size), zipf_text(size.words, size.trained)
    settings = TrainingSettings(batch_tokens=1024, learning_rate=1e-3, dropout=0.0)
    batches = [batch for batch, _ in TextBatches(text, model.architecture, settings, 1)]
    times, losses = list[float](), list[Any]()

    def log(step: int, values: Any) -> None:
        times.append(process_time())
        losses.append(values["train_loss"])

    if side == "ours":
        settings = settings.model_copy(update={"epochs": size.steps / len(batches)})
        train(model, text, settings, 1, on_log=log, log_every_steps=1)
    else:
        train_by_trainer(peer_of(size, model), [as_labels(batch) for batch in batches[: size.steps]], settings, log)
    targets = sum(len(batch.targets) for batch in batches[WARM_STEPS : len(times)])
    return {"seconds": times[-1] - times[WARM_STEPS - 1], "targets": targets, "loss": losses[0]}


def train_by_trainer(model: Any, examples: Any, settings: TrainingSettings, log: Callable[[int, Any], None]) -> None:
    """Train on batches that are made already, and log each step."""

    class SameBatches(Trainer):
        def get_train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(examples, batch_size=None)

    class Logged(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if "loss" in logs:
                log(state.global_step, {"train_loss": logs["loss"]})

    steps = {"max_steps": len(examples), "max_grad_norm": settings.gradient_clip, "logging_steps": 1}
    schedule = {"learning_rate": settings.learning_rate, "lr_scheduler_type": "cosine", "optim": "adamw_torch_fused"}
    quiet = {"save_strategy": "no", "report_to": [], "disable_tqdm": True, "dataloader_pin_memory": False}
    on_processor = {"weight_decay": settings.weight_decay, "bf16": has_bfloat16(), "use_cpu": True}
    options: dict[str, Any] = {**steps, **schedule, **quiet, **on_processor}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, **options)
        trainer = SameBatches(model, arguments, train_dataset=examples, callbacks=[Logged()])
        trainer.remove_callback(PrinterCallback)
        trainer.train()


def as_labels(batch: Any) -> dict[str, Any]:
    """A batch as Hugging Face takes it: inputs (B, T + 1) and, shifted by the model itself, labels (B, T + 1)."""
    rows, length = batch.tokens.shape
    following = torch.full((rows * length,), -100)
    following[batch.positions] = batch.targets
    following = following.view(rows, length)
    inputs = torch.cat([batch.tokens[:, :1], following.clamp(min=0)], dim=1)
    return {"input_ids": inputs, "labels": torch.cat([torch.full((rows, 1), -100), following], dim=1)}
