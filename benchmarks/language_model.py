"""Training of the word-level language model against ``transformers.Trainer``, and the n-gram model against KenLM.

- Both sides train one GPT-2 shape with equal weights on equal batches of sentences of similar length, so that little is
  padding. The Trainer is not compiled: each new shape takes ``torch.compile`` longer than it saves on a processor.
- Perplexity of a text by a trigram model, with its ARPA file and without. KenLM is C++ with a hash table, and faster.
  It is in the extra ``peers``; without it the rows are left out.
"""

import importlib.util
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from time import process_time
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from benchmarks.frame import check_same, speed
from benchmarks.texts import messages, zipf_text
from tasks.language_model.encoded_text import encode_text
from tasks.language_model.ngram.folder import load, save_ngrams
from tasks.language_model.ngram.kneser_ney import estimate
from tasks.language_model.normalisation import normalise
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.training import TextBatches
from tasks.language_model.training import train as train_ours
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.torch_setup import has_bfloat16

BATCH_TOKENS, LEARNING_RATE, WARM_STEPS = 1024, 1e-3, 4
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
    rows = [training(name) for name in (("small",) if small else ("20,000 words", "85,000 words"))]
    return rows + (ngram(2_000 if small else 100_000) if importlib.util.find_spec("kenlm") else [])


def model_of(size: Size, context: str = "sentence") -> Any:
    """Our model with drawn weights."""
    shape = {key: getattr(size, key) for key in ("layers", "heads", "width", "maximum_tokens")}
    model = TransformerLanguageModel(ArchitectureSettings.model_validate({**shape, "context": context}), size.words)
    model.initialise(1)
    return model


def peer_of(size: Size, model: Any = None) -> Any:
    """``GPT2LMHeadModel`` of the same shape, with the weights of ``model`` if there is one."""
    shape: dict[str, Any] = {"n_embd": size.width, "n_layer": size.layers, "n_head": size.heads}
    plain: dict[str, Any] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    ids: dict[str, Any] = {"vocab_size": size.words, "bos_token_id": 2, "eos_token_id": 3}
    peer: Any = GPT2LMHeadModel(GPT2Config(n_positions=size.maximum_tokens + 1, **ids, **shape, **plain))
    if model is not None:
        with torch.no_grad():
            for name, weights in peer.transformer.named_parameters():
                ours = model.get_parameter(reduce(lambda text, pair: text.replace(*pair), OURS_BY_PEER.items(), name))
                ours = ours.t() if ours.dim() == 2 and ".c_" in name else ours
                weights[: len(ours)].copy_(ours)
    return peer


def as_labels(batch: Any) -> dict[str, Any]:
    """A batch as Hugging Face takes it: inputs (B, T + 1) and, shifted by the model itself, labels (B, T + 1)."""
    rows, length = batch.tokens.shape
    following = torch.full((rows * length,), -100)
    following[batch.positions] = batch.targets
    following = following.view(rows, length)
    inputs = torch.cat([batch.tokens[:, :1], following.clamp(min=0)], dim=1)
    return {"input_ids": inputs, "labels": torch.cat([torch.full((rows, 1), -100), following], dim=1)}


def train_by_trainer(
    model: Any, examples: Any, settings: Any, times: list[float], clock: Any = process_time, every: int = 1, **more: Any
) -> list[float]:
    """Train on batches that are made already; note the time and return the loss every few steps."""

    class SameBatches(Trainer):
        def get_train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(examples, batch_size=None)

    class Timing(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step % every == 0:
                times.append(clock())

    optimiser = {"learning_rate": settings.learning_rate, "weight_decay": settings.weight_decay}
    schedule = {"max_steps": len(examples), "lr_scheduler_type": "cosine", "max_grad_norm": settings.gradient_clip}
    quiet: dict[str, Any] = {"report_to": [], "disable_tqdm": True, "dataloader_pin_memory": False}
    options = {"save_strategy": "no", "logging_steps": every, "optim": "adamw_torch_fused", **quiet}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, **optimiser, **schedule, **options, **more)
        trainer = SameBatches(model, arguments, train_dataset=examples, callbacks=[Timing()])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def training(name: str) -> dict[str, Any]:
    """The row of one size."""
    ours, peer = (partial(train, SIZES[name], side) for side in ("ours", "trainer"))
    first, other = ours(), peer()
    check_same([round(first["loss"], 3)], [round(other["loss"], 3)], "loss of the first step")
    title, targets = f"language model of {name}, training against Trainer", first["targets"]
    return speed(title, targets, "tokens/s", ours, peer, clock=lambda side: side()["seconds"])


def train(size: Size, side: str) -> dict[str, float]:
    """Train one side: processor seconds and targets after the warm steps, and the first step's loss."""
    model, text = model_of(size), zipf_text(size.words, size.trained)
    settings = TrainingSettings(batch_tokens=BATCH_TOKENS, learning_rate=LEARNING_RATE, dropout=0.0)
    batches = [batch for batch, _ in TextBatches(text, model.architecture, settings, 1)]
    times, losses = list[float](), list[Any]()
    if side == "ours":

        def log(step: int, values: Any) -> None:
            times.append(process_time())
            losses.append(values["train_loss"])

        settings = settings.model_copy(update={"epochs": size.steps / len(batches)})
        train_ours(model, text, settings, 1, on_log=log, log_every_steps=1)
    else:
        examples = [as_labels(batch) for batch in batches[: size.steps]]
        more = {"bf16": has_bfloat16(), "use_cpu": True}
        losses += train_by_trainer(peer_of(size, model), examples, settings, times, **more)
    targets = sum(len(batch.targets) for batch in batches[WARM_STEPS : len(times)])
    return {"seconds": times[-1] - times[WARM_STEPS - 1], "targets": targets, "loss": losses[0]}


def ngram(lines: int) -> list[dict[str, Any]]:
    """A trigram model of some lines, read by both sides."""
    import kenlm

    texts = [" ".join(normalise(line)) for line in messages()]
    trained, read = [text for text in texts[:lines] if text], [text for text in texts[-lines // 10 :] if text]
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *dict.fromkeys(word for text in trained for word in text.split())))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save_ngrams(path, estimate(encode_text(trained, vocabulary), 3, len(vocabulary))[0], vocabulary)

        def ours(model: Any) -> float:
            return float(model.mean_loss(encode_text(read, vocabulary)))

        def theirs(model: Any) -> float:
            return sum(map(model.score, read))

        open_ours: Callable[[], Any] = lambda: load(path)[0]  # noqa: E731
        open_theirs: Callable[[], Any] = lambda: kenlm.Model(str(path / "generic.arpa"))  # noqa: E731
        model, peer = open_ours(), open_theirs()
        words = sum(len(text.split()) + 1 for text in read)
        both = [round(-ours(model) / math.log(10), 3)], [round(theirs(peer) / words, 3)]
        check_same(*both, "logarithm to base 10 of a word")
        name, unit = f"perplexity of {words:,} words by a trigram model", "words/s"
        opened: tuple[Any, Any] = (lambda: ours(open_ours()), lambda: theirs(open_theirs()))
        return [
            speed(f"{name} in memory against KenLM", words, unit, partial(ours, model), partial(theirs, peer)),
            speed(f"{name} with its ARPA file against KenLM", words, unit, *opened),
        ]
