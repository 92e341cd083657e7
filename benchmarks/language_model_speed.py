"""Training the word-level language model: speed and memory against the ordinary loss and Hugging Face's Trainer.

Each side trains a GPT-2 of the same shape from the same weights on the same batches, in a process of its own with one
thread. Speed is targets a second of processor time, without the first steps, so that a busy machine changes little.
Memory is what the process grows by at its peak, from just before training.

- ``full_logits``: our model and loop with all scores at once and PyTorch's cross entropy.
- ``trainer``: ``transformers.Trainer`` with ``GPT2LMHeadModel`` and its own loss.

Twice: at the default sizes, and with the paper's vocabulary of 85,000 words at twice the default width.
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.language_model_workload import (
    Workload,
    as_labels,
    example,
    loss_row,
    peer_model,
    ratio_row,
    resident_peak,
)

BATCH_TOKENS, LEARNING_RATE = 1024, 1e-3
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """One size at which the sides are held against each other."""

    title: str
    workload: Workload
    steps: int
    warm_steps: int
    peers: tuple[str, ...]


CASES = (
    Case("language model", Workload(20_000, 128, 18_700), 14, 4, ("full_logits", "trainer")),
    Case("language model of 85,000 words", Workload(85_000, 256, 12_000), 9, 3, ("trainer",)),
)
SPEED_TARGETS = {"full_logits": ">= 1.0", "trainer": ">= 1.5"}


def run() -> list[dict[str, Any]]:
    rows = []
    for index, case in enumerate(CASES):
        measured = {side: _measure(index, side) for side in ("ours", *case.peers)}
        ours = measured["ours"]
        for peer in case.peers:
            other, name = measured[peer], peer.replace("_", " ")
            rows += [
                ratio_row(
                    f"{case.title} training against {name}", "tokens_per_second", ours, other, SPEED_TARGETS[peer]
                ),
                ratio_row(f"{case.title} memory against {name}", "megabytes", ours, other, "<= 0.5"),
                loss_row(f"{case.title} loss against {name}", ours, other),
            ]
    return rows


def _measure(case: int, side: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.language_model_speed", str(case), side]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(f"benchmark side {side!r} failed:\n{finished.stderr}")
    return json.loads(finished.stdout.splitlines()[-1])


def _batches(case: Case, text: Any) -> list[Any]:
    from benchmarks.language_model_workload import MAXIMUM_TOKENS
    from tasks.language_model.transformer.batching import divide, epoch_order, make_batch

    windows, is_target = divide(text, MAXIMUM_TOKENS), text.is_target()
    return [make_batch(text, is_target, windows, order) for order in epoch_order(windows, BATCH_TOKENS, 1, 0)]


class _Clock:
    """Processor time and targets after the warm steps."""

    def __init__(self, case: Case, batches: list[Any]):
        self.warm_steps = case.warm_steps
        self.targets = [len(batch.targets) for batch in batches]
        self.times: list[float] = []
        self.resident = resident_peak()

    def step(self, *_: Any) -> None:
        self.times.append(time.process_time())

    def result(self, loss: float) -> dict[str, float]:
        seconds = self.times[-1] - self.times[self.warm_steps - 1]
        return {
            "tokens_per_second": sum(self.targets[self.warm_steps : len(self.times)]) / seconds,
            "megabytes": resident_peak() - self.resident,
            "loss": loss,
        }


def _train_ours(case: Case, full_logits: bool) -> dict[str, float]:
    import torch
    from torch.nn import functional

    from tasks.language_model import training as trainer
    from tasks.language_model.settings import TrainingSettings

    model, text = example(case.workload)
    settings = TrainingSettings(batch_tokens=BATCH_TOKENS, learning_rate=LEARNING_RATE, dropout=0.0)
    every = _batches(case, text)
    batches = every[: case.steps]
    if full_logits:

        def full_cross_entropy(
            hidden: Any, projection: Any, targets: Any, weights: Any = None, arithmetic: Any = None
        ) -> Any:
            return functional.cross_entropy(functional.linear(hidden, projection), targets, reduction="sum")

        trainer.chunked_cross_entropy = full_cross_entropy
    with torch.no_grad():
        losses = []
        for batch in batches[:3]:
            hidden = model(batch.tokens).flatten(0, 1).index_select(0, batch.positions)
            losses.append(trainer.chunked_cross_entropy(hidden, model.embedding.weight, batch.targets) / len(hidden))
    settings = settings.model_copy(update={"epochs": case.steps / len(every)})
    clock = _Clock(case, batches)
    record = trainer.train(model, text, settings, 1, on_log=clock.step, log_every_steps=1)
    assert record.tokens == sum(clock.targets)
    return clock.result(float(torch.stack(losses).mean()))


def _train_peer(case: Case) -> dict[str, float]:
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from tasks.language_model.settings import TrainingSettings
    from tasks.torch_setup import has_bfloat16

    settings = TrainingSettings(learning_rate=LEARNING_RATE)
    model, text = example(case.workload)
    batches = _batches(case, text)[: case.steps]
    peer = peer_model(case.workload, model)
    examples: Any = [as_labels(batch) for batch in batches]
    with torch.no_grad():
        losses = [peer(**example).loss for example in examples[:3]]
    clock = _Clock(case, batches)

    class Timing(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.step()

    class SameBatches(Trainer):
        def get_train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(examples, batch_size=None)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, use_cpu=True, bf16=has_bfloat16(), max_steps=case.steps, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True, learning_rate=settings.learning_rate,
            lr_scheduler_type="cosine", weight_decay=settings.weight_decay, max_grad_norm=settings.gradient_clip,
            dataloader_pin_memory=False,
        )  # fmt: skip
        SameBatches(model=peer, args=arguments, train_dataset=examples, callbacks=[Timing()]).train()
    return clock.result(float(torch.stack(losses).mean()))


def _side() -> None:
    from tasks.torch_setup import set_up_torch

    case, side = CASES[int(sys.argv[1])], sys.argv[2]
    set_up_torch(1)
    print(json.dumps(_train_peer(case) if side == "trainer" else _train_ours(case, side == "full_logits")))


if __name__ == "__main__":
    _side()
