"""The word-level language model against ``transformers.Trainer``, and the n-gram model against KenLM.

- Training and evaluation: both sides have the weights of one GPT-2 shape and the same sentences, in batches of similar
  length, so that little is padding. Training has equal batches; evaluation by the Trainer has the fastest of several
  batch sizes. On a processor the Trainer is not compiled: each new shape takes ``torch.compile`` longer than it saves.
  Memory is what a process of each side's own grows by.
- Perplexity of a text by a trigram model, with its ARPA file and without. KenLM is C++ with a hash table, and faster.
  It is the extra ``kenlm``, which pip builds from source; where it is missing the rows are left out.
"""

import importlib.util
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from benchmarks.frame import Action, check_same, fastest, grown, in_process, row, speed
from benchmarks.texts import messages, zipf_text
from tasks.corpora.words import fold, words_of
from tasks.language_model.encoded_text import encode_text
from tasks.language_model.ngram.folder import load, save_ngrams
from tasks.language_model.ngram.kneser_ney import estimate
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.training import TextBatches
from tasks.language_model.training import train as train_ours
from tasks.language_model.transformer.batching import batches_by_length, divide, make_batch
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.torch_setup import has_bfloat16

BATCH_TOKENS, LEARNING_RATE, WARM_STEPS = 1024, 1e-3, 4


@dataclass(frozen=True)
class Size:
    """The size of a model, and how many targets and steps are read."""

    words: int
    width: int
    layers: int = 3
    heads: int = 4
    maximum_tokens: int = 128
    trained: int = 18_700
    evaluated: int = 12_000
    steps: int = 14


SIZES = {
    "20,000 words": Size(20_000, 128),
    "85,000 words": Size(85_000, 256, trained=12_000, evaluated=6_000, steps=9),
    "small": Size(2_000, 32, trained=9_000, evaluated=3_000, steps=6),
}


def run(small: bool) -> list[dict[str, Any]]:
    sizes = ("small",) if small else ("20,000 words", "85,000 words")
    rows = [each for name in sizes for each in (*_training(name), *_evaluation(name))]
    return rows + (_ngram(2_000 if small else 100_000) if importlib.util.find_spec("kenlm") else [])


def model_of(size: Size, context: str = "sentence") -> Any:
    """Our model with drawn weights."""
    shape = {key: getattr(size, key) for key in ("layers", "heads", "width", "maximum_tokens")}
    model = TransformerLanguageModel(ArchitectureSettings.model_validate({**shape, "context": context}), size.words)
    model.initialise(1)
    return model


def peer_of(size: Size, model: Any = None) -> Any:
    """``GPT2LMHeadModel`` of the same shape, with the weights of ``model`` if there is one."""
    shape: dict[str, Any] = {
        "n_positions": size.maximum_tokens + 1,
        "n_embd": size.width,
        "n_layer": size.layers,
        "n_head": size.heads,
    }
    plain: dict[str, Any] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    peer = GPT2LMHeadModel(GPT2Config(vocab_size=size.words, bos_token_id=2, eos_token_id=3, **shape, **plain))
    names = {
        "attention_norm": "ln_1", "attention_input": "attn.c_attn", "attention_output": "attn.c_proj",
        "feed_forward_norm": "ln_2", "feed_forward_input": "mlp.c_fc", "feed_forward_output": "mlp.c_proj",
    }  # fmt: skip
    if model is not None:
        state = peer.state_dict()
        with torch.no_grad():
            state["transformer.wte.weight"].copy_(model.embedding.weight)
            state["transformer.wpe.weight"][: size.maximum_tokens].copy_(model.positions.weight)
            for name, weights in model.final_norm.named_parameters():
                state[f"transformer.ln_f.{name}"].copy_(weights)
            for index, block in enumerate(model.blocks):
                for name, weights in block.named_parameters():
                    part, kind = name.split(".")
                    # GPT-2 has its matrices transposed.
                    state[f"transformer.h.{index}.{names[part]}.{kind}"].copy_(
                        weights.t() if weights.dim() == 2 else weights
                    )
    return peer


def as_labels(batch: Any) -> dict[str, Any]:
    """A batch as Hugging Face takes it: inputs (B, T + 1) and, shifted by the model itself, labels (B, T + 1)."""
    rows, length = batch.tokens.shape
    following = torch.full((rows * length,), -100)
    following[batch.positions] = batch.targets
    following = following.view(rows, length)
    inputs = torch.cat([batch.tokens[:, :1], following.clamp(min=0)], dim=1)
    return {"input_ids": inputs, "labels": torch.cat([torch.full((rows, 1), -100), following], dim=1)}


def trainer_of(model: Any, examples: Any, folder: str, callbacks: Any = (), **options: Any) -> Any:
    """``transformers.Trainer`` with batches that are made already."""

    class SameBatches(Trainer):
        def get_train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(examples, batch_size=None)

        def get_eval_dataloader(self, *_: Any) -> Any:
            return self.get_train_dataloader()

    arguments = TrainingArguments(folder, report_to=[], disable_tqdm=True, dataloader_pin_memory=False, **options)
    trainer = SameBatches(model, arguments, train_dataset=examples, eval_dataset=examples, callbacks=[*callbacks])
    trainer.remove_callback(PrinterCallback)
    return trainer


def train_by_trainer(
    model: Any, examples: Any, settings: Any, times: list[float], clock: Any = process_time, every: int = 1, **more: Any
) -> list[float]:
    """Train on these batches; note the time and return the loss every few steps."""

    class Timing(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step % every == 0:
                times.append(clock())

    optimiser = {"learning_rate": settings.learning_rate, "weight_decay": settings.weight_decay}
    schedule = {"max_steps": len(examples), "lr_scheduler_type": "cosine", "max_grad_norm": settings.gradient_clip}
    options = {**optimiser, **schedule, "save_strategy": "no", "logging_steps": every, "optim": "adamw_torch_fused"}
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(model, examples, folder, [Timing()], **options, **more)
        trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def _training(name: str) -> list[dict[str, Any]]:
    ours, peer = (partial(train, name, side) for side in ("ours", "trainer"))
    first, other = ours(), peer()
    check_same([round(first["loss"], 3)], [round(other["loss"], 3)], "loss of the first step")
    our_memory, peer_memory = (in_process("language_model", "memory", "train", name, s) for s in ("ours", "trainer"))
    title, clock = f"language model of {name}, training", lambda side: side()["seconds"]
    return [
        speed(f"{title} against Trainer", first["targets"], "tokens/s", ours, peer, clock=clock),
        row(f"{title}, memory against Trainer", our_memory, peer_memory, "MiB", "<= 1.0"),
    ]


def train(name: str, side: str) -> dict[str, float]:
    """Train one side: processor seconds and targets after the warm steps, MiB added, and the first step's loss."""
    size = SIZES[name]
    model, text = model_of(size), zipf_text(size.words, size.trained)
    settings = TrainingSettings(batch_tokens=BATCH_TOKENS, learning_rate=LEARNING_RATE, dropout=0.0)
    batches = [batch for batch, _ in TextBatches(text, model.architecture, settings, 1)]
    times, losses = list[float](), list[Any]()
    if side == "ours":

        def log(step: int, values: Any) -> None:
            times.append(process_time())
            losses.append(values["train_loss"])

        settings = settings.model_copy(update={"epochs": size.steps / len(batches)})
        added = grown(lambda: train_ours(model, text, settings, 1, on_log=log, log_every_steps=1))
    else:
        peer, examples = peer_of(size, model), [as_labels(batch) for batch in batches[: size.steps]]
        more = {"bf16": has_bfloat16(), "use_cpu": True}
        added = grown(lambda: losses.extend(train_by_trainer(peer, examples, settings, times, **more)))
    targets = sum(len(batch.targets) for batch in batches[WARM_STEPS : len(times)])
    return {"seconds": times[-1] - times[WARM_STEPS - 1], "targets": targets, "loss": losses[0], "megabytes": added}


def _evaluation(name: str) -> list[dict[str, Any]]:
    sizes: dict[str, Action] = {tokens: evaluation(name, tokens)[0] for tokens in ("512", "1024", "2048")}
    best = fastest(sizes)
    (ours, loss), (peer, peer_loss) = evaluation(name, "ours"), evaluation(name, best)
    check_same([round(loss(), 4)], [round(peer_loss(), 4)], "loss of evaluation")
    text = zipf_text(SIZES[name].words, SIZES[name].evaluated)
    our_memory, peer_memory = (in_process("language_model", "memory", "evaluate", name, s) for s in ("ours", best))
    title, targets = f"language model of {name}, evaluation", len(text.tokens) - text.sentences
    sorted_batches = f"batches of {best} tokens sorted by length"
    return [
        speed(f"{title} against Trainer.evaluate, {sorted_batches}", targets, "tokens/s", ours, peer),
        row(f"{title}, memory against Trainer.evaluate", our_memory, peer_memory, "MiB", "<= 1.0"),
    ]


def evaluation(name: str, side: str) -> tuple[Action, Callable[[], float]]:
    """Evaluation, and the mean loss of a target in nats; ``side``: ``ours``, or the tokens of the Trainer's batches."""
    size = SIZES[name]
    model, text = model_of(size).eval(), zipf_text(size.words, size.evaluated)
    if side == "ours":
        scored = partial(WordTransformer(model, Vocabulary(SPECIAL_TOKENS)).score_targets, text)
        return scored, lambda: -float(scored().log_probability.mean())
    windows, is_target = divide(text, size.maximum_tokens), text.is_target()
    batches = [make_batch(text, is_target, windows, chosen) for chosen in batches_by_length(windows, int(side))]
    peer, examples = peer_of(size, model), [as_labels(batch) for batch in batches]

    @torch.no_grad()
    def loss() -> float:
        targets = [len(batch.targets) for batch in batches]
        sums = (peer(**each).loss.item() * count for each, count in zip(examples, targets, strict=True))
        return sum(sums) / sum(targets)

    return trainer_of(peer, examples, tempfile.gettempdir(), use_cpu=True).evaluate, loss


def memory(what: str, name: str, side: str) -> float:
    """MiB that training or evaluation adds to a process that has loaded its side."""
    return train(name, side)["megabytes"] if what == "train" else grown(evaluation(name, side)[0])


def _ngram(lines: int) -> list[dict[str, Any]]:
    import kenlm

    texts = [" ".join(map(fold, words_of(line))) for line in messages()]
    trained, read = [text for text in texts[:lines] if text], [text for text in texts[-lines // 10 :] if text]
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *dict.fromkeys(word for text in trained for word in text.split())))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save_ngrams(path, estimate(encode_text(trained, vocabulary), 3, len(vocabulary))[0], vocabulary)
        (model, loaded), peer = load(path), kenlm.Model(str(path / "generic.arpa"))
        words = sum(len(text.split()) + 1 for text in read)
        ours = -model.mean_loss(encode_text(read, loaded)) / math.log(10)
        check_same([round(ours, 3)], [round(sum(map(peer.score, read)) / words, 3)], "logarithm to base 10 of a word")
        alone = lambda: model.mean_loss(encode_text(read, loaded)), lambda: [*map(peer.score, read)]
        whole = (
            lambda: load(path)[0].mean_loss(encode_text(read, loaded)),
            lambda: [*map(kenlm.Model(str(path / "generic.arpa")).score, read)],
        )
        name = f"perplexity of {words:,} words by a trigram model"
        return [
            speed(f"{name} in memory against KenLM", words, "words/s", *alone),
            speed(f"{name} with its ARPA file against KenLM", words, "words/s", *whole),
        ]
