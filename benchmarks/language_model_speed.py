"""Training the word-level language model: speed and memory against the ordinary loss and Hugging Face's Trainer.

Each side trains a GPT-2 of the same shape from the same weights on the same batches, in a process of its own with one
thread. Speed is targets a second of processor time, without the first steps, so that a busy machine changes little.
Memory is what the process grows by at its peak, from just before training.

- ``full_logits``: our model and loop with all scores at once and PyTorch's cross entropy.
- ``trainer``: ``transformers.Trainer`` with ``GPT2LMHeadModel`` and its own loss.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tasks.reports.stage_report import peak_memory_bytes

WORDS, WIDTH, LAYERS, HEADS, MAXIMUM_TOKENS = 20_000, 128, 3, 4, 128
BATCH_TOKENS, STEPS, WARM_STEPS = 1024, 14, 4
SIDES = ("ours", "full_logits", "trainer")


def run() -> list[dict]:
    measured = {side: _measure(side) for side in SIDES}
    ours = measured["ours"]
    rows = []
    for peer, speed, memory in (("full_logits", 1.0, 0.5), ("trainer", 1.5, 0.5)):
        other = measured[peer]
        name = peer.replace("_", " ")
        rows += [
            _row(
                f"language model training against {name}", "tokens_per_second", ours, other, "tokens/s", f">= {speed}"
            ),
            _row(f"language model memory against {name}", "megabytes", ours, other, "MB", f"<= {memory}"),
        ]
        difference = abs(ours["loss"] - other["loss"])
        rows.append(
            {
                "name": f"language model loss against {name} (ratio: absolute difference)",
                "ours": round(ours["loss"], 6),
                "peer": round(other["loss"], 6),
                "unit": "nats a token, float32",
                "ratio": round(difference, 7),
                "target": "< 0.00005",
                "holds": difference < 0.00005,
            }
        )
    return rows


def _row(name: str, key: str, ours: dict, peer: dict, unit: str, target: str) -> dict:
    ratio = ours[key] / peer[key]
    sign, limit = target.split()
    holds = ratio >= float(limit) if sign == ">=" else ratio <= float(limit)
    values = {"ours": round(ours[key], 1), "peer": round(peer[key], 1)}
    return {"name": name, **values, "unit": unit, "ratio": round(ratio, 3), "target": target, "holds": holds}


def _measure(side: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.language_model_speed", side]
    finished = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(f"benchmark side {side!r} failed:\n{finished.stderr}")
    return json.loads(finished.stdout.splitlines()[-1])


def _example() -> tuple[Any, Any, Any]:
    """A model and a text of Zipf-distributed words in sentences of 3 to 40 words, with its training settings."""
    from tasks.language_model.encoded_text import EncodedText
    from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
    from tasks.language_model.transformer import TransformerLanguageModel
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID

    generator = np.random.default_rng(1)
    first = len(SPECIAL_TOKENS)
    frequencies = 1 / np.arange(1, WORDS - first + 1)
    sentences = []
    while sum(map(len, sentences)) < STEPS * BATCH_TOKENS * 1.3:
        words = generator.choice(WORDS - first, size=generator.integers(3, 41), p=frequencies / frequencies.sum())
        sentences.append([START_ID, *(words + first), END_ID])
    lengths = np.array([len(sentence) for sentence in sentences])
    text = EncodedText(
        tokens=np.concatenate(sentences).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        lines=np.arange(1, len(sentences) + 1),
        empty_lines=0,
        marker_like=0,
        markers_are_targets=True,
    )
    architecture = ArchitectureSettings(layers=LAYERS, heads=HEADS, width=WIDTH, maximum_tokens=MAXIMUM_TOKENS)
    model = TransformerLanguageModel(architecture, WORDS)
    model.initialise(1)
    return model, text, TrainingSettings(batch_tokens=BATCH_TOKENS, learning_rate=1e-3, dropout=0.0)


def _batches(text: Any) -> list[Any]:
    from tasks.language_model.batching import training_batches
    from tasks.language_model.windows import divide

    return list(training_batches(text, divide(text, MAXIMUM_TOKENS), BATCH_TOKENS, seed=1, epoch=0))[:STEPS]


def _resident_peak() -> float:
    return peak_memory_bytes() / 2**20


class _Clock:
    """Processor time and targets after the warm steps."""

    def __init__(self, batches: list[Any]):
        self.targets = [len(batch.targets) for batch in batches]
        self.times: list[float] = []
        self.resident = _resident_peak()

    def step(self, *_: Any) -> None:
        self.times.append(time.process_time())

    def result(self, loss: float) -> dict[str, float]:
        seconds = self.times[-1] - self.times[WARM_STEPS - 1]
        return {
            "tokens_per_second": sum(self.targets[WARM_STEPS : len(self.times)]) / seconds,
            "megabytes": _resident_peak() - self.resident,
            "loss": loss,
        }


def _train_ours(full_logits: bool) -> dict[str, float]:
    import torch
    from torch.nn import functional

    from tasks.language_model import training, training_module

    model, text, settings = _example()
    batches = _batches(text)
    if full_logits:

        def full_cross_entropy(hidden: Any, projection: Any, targets: Any, arithmetic: Any = None) -> Any:
            return functional.cross_entropy(functional.linear(hidden, projection), targets, reduction="sum")

        training_module.chunked_cross_entropy = full_cross_entropy
    with torch.no_grad():
        losses = []
        for batch in batches[:3]:
            hidden = model(batch.tokens).flatten(0, 1).index_select(0, batch.positions)
            losses.append(
                training_module.chunked_cross_entropy(hidden, model.embedding.weight, batch.targets) / len(hidden)
            )
    settings = settings.model_copy(update={"epochs": STEPS / len(_all_batches(text))})
    clock = _Clock(batches)
    record = training.train(model, text, settings, 1, on_log=clock.step, log_every_steps=1)
    assert record.tokens == sum(clock.targets)
    return clock.result(float(torch.stack(losses).mean()))


def _all_batches(text: Any) -> list[Any]:
    from tasks.language_model.batching import epoch_order
    from tasks.language_model.windows import divide

    return epoch_order(divide(text, MAXIMUM_TOKENS), BATCH_TOKENS, 1, 0)


def _train_peer() -> dict[str, float]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    from tasks.torch_setup import has_bfloat16

    model, text, settings = _example()
    batches = _batches(text)
    configuration = GPT2Config(
        vocab_size=WORDS, n_positions=MAXIMUM_TOKENS + 1, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=2, eos_token_id=3, use_cache=False,
    )  # fmt: skip
    peer = GPT2LMHeadModel(configuration)
    _copy_weights(model, peer)
    examples = [_as_labels(batch) for batch in batches]
    with torch.no_grad():
        losses = [peer(**example).loss for example in examples[:3]]
    clock = _Clock(batches)

    class Timing(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.step()

    class SameBatches(Trainer):
        def get_train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(examples, batch_size=None)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, use_cpu=True, bf16=has_bfloat16(), max_steps=STEPS, report_to=[], save_strategy="no",
            logging_strategy="no", disable_tqdm=True, learning_rate=settings.learning_rate, lr_scheduler_type="cosine",
            weight_decay=settings.weight_decay, max_grad_norm=settings.gradient_clip, dataloader_pin_memory=False,
        )  # fmt: skip
        SameBatches(model=peer, args=arguments, train_dataset=examples, callbacks=[Timing()]).train()
    return clock.result(float(torch.stack(losses).mean()))


def _as_labels(batch: Any) -> dict[str, Any]:
    """A batch as Hugging Face takes it: inputs (B, T + 1) and, shifted by the model itself, labels (B, T + 1)."""
    import torch

    rows, length = batch.tokens.shape
    following = torch.full((rows * length,), -100)
    following[batch.positions] = batch.targets
    following = following.view(rows, length)
    inputs = torch.cat([batch.tokens[:, :1], following.clamp(min=0)], dim=1)
    labels = torch.cat([torch.full((rows, 1), -100), following], dim=1)
    return {"input_ids": inputs, "labels": labels}


def _copy_weights(model: Any, peer: Any) -> None:
    import torch

    names = {
        "attention_norm": "ln_1", "attention_input": "attn.c_attn", "attention_output": "attn.c_proj",
        "feed_forward_norm": "ln_2", "feed_forward_input": "mlp.c_fc", "feed_forward_output": "mlp.c_proj",
    }  # fmt: skip
    state = peer.state_dict()
    with torch.no_grad():
        state["transformer.wte.weight"].copy_(model.embedding.weight)
        state["transformer.wpe.weight"][:MAXIMUM_TOKENS].copy_(model.positions.weight)
        for name, parameter in model.final_norm.named_parameters():
            state[f"transformer.ln_f.{name}"].copy_(parameter)
        for index, block in enumerate(model.blocks):
            for name, parameter in block.named_parameters():
                part, kind = name.split(".")
                # GPT-2 keeps its matrices transposed.
                source = parameter.t() if parameter.dim() == 2 else parameter
                state[f"transformer.h.{index}.{names[part]}.{kind}"].copy_(source)


def _side() -> None:
    from tasks.torch_setup import set_up_torch

    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=SIDES)
    side = parser.parse_args().side
    set_up_torch(1)
    print(json.dumps(_train_peer() if side == "trainer" else _train_ours(side == "full_logits")))


if __name__ == "__main__":
    _side()
