"""Training the word-level language model: our loop, and ``transformers.Trainer`` with the same weights and text.

Speed is targets a second, the median of stretches of ``STRETCH`` steps after the warm ones (another shape may be
compiled in one of them); utilisation is 6 operations for each parameter and target over the rate
of matrix products that the same card reached in the same run.
"""

import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from benchmarks.gpu.device import PeakMemory, clock
from benchmarks.gpu.workload import SEED, Training, training_workload, zipf_text
from benchmarks.language_model_workload import as_labels

LEARNING_RATE = 3e-4
STRETCH = 5
"""Steps between two looks at the clock, which waits for the device."""
TRAINING_FACTOR = 6
"""Operations for each parameter and target (Kaplan et al. 2020, section 2.1)."""


def train_ours(device: str, tiny: bool, *, compiled: bool, context: str = "packed") -> dict[str, Any]:
    """Our model and loop."""
    from tasks.language_model.settings import TrainingSettings
    from tasks.language_model.training import train
    from tasks.language_model.transformer.model import TransformerLanguageModel

    workload = training_workload(tiny)
    text = zipf_text(workload)
    model = TransformerLanguageModel(workload.architecture(context), workload.words)
    model.initialise(SEED)
    settings = TrainingSettings(batch_tokens=workload.batch_tokens, learning_rate=LEARNING_RATE, dropout=0.0)
    moments: list[tuple[int, float]] = []
    memory = PeakMemory(device)
    record = train(
        model,
        text,
        settings,
        SEED,
        on_log=lambda step, values: moments.append((step, clock(device))),
        log_every_steps=STRETCH,
        compiled=compiled,
    )
    # Steps have about the same number of targets.
    targets = [record.tokens / record.steps] * record.steps
    speed = _speed(targets, dict(moments), workload)
    return _result(speed, memory, model.parameter_count(), record.curve[-1].get("train_loss"))


def train_with_trainer(device: str, tiny: bool) -> dict[str, Any]:
    """GPT-2 of the same shape and number of weights in ``transformers.Trainer``, one sentence a row."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    workload = training_workload(tiny)
    examples, targets = _examples(workload)
    configuration = GPT2Config(
        vocab_size=workload.words, n_positions=workload.maximum_tokens + 1, n_embd=workload.width,
        n_layer=workload.layers, n_head=workload.heads, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=2, eos_token_id=3, use_cache=False,
    )  # fmt: skip
    torch.manual_seed(SEED)
    peer = GPT2LMHeadModel(configuration)
    moments: dict[int, float] = {}

    class Timing(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step % STRETCH == 0:
                moments[state.global_step] = clock(device)

    class SameBatches(Trainer):
        def get_train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(examples, batch_size=None)

    memory = PeakMemory(device)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, use_cpu=device == "cpu", bf16=_has_bfloat16(), max_steps=len(examples), report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True, learning_rate=LEARNING_RATE,
            lr_scheduler_type="cosine", weight_decay=0.01, max_grad_norm=1.0, optim="adamw_torch_fused",
            dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = SameBatches(model=peer, args=arguments, train_dataset=examples, callbacks=[Timing()])
        loss = trainer.train().training_loss
    parameters = sum(parameter.numel() for parameter in peer.parameters())
    return _result(_speed(targets, moments, workload), memory, parameters, float(loss))


def _speed(targets: Sequence[float], moments: Mapping[int, float], workload: Training) -> float:
    """Targets a second, from those of each step and when each stretch was done."""
    stretches = pairwise(sorted(step for step in moments if step >= workload.warm_steps))
    return median(sum(targets[begin:end]) / (moments[end] - moments[begin]) for begin, end in stretches)


def _result(speed: float, memory: PeakMemory, parameters: int, loss: Any) -> dict[str, Any]:
    return {
        "tokens_per_second": speed,
        "operations_per_second": TRAINING_FACTOR * parameters * speed,
        "peak_memory_bytes": memory.bytes(),
        "parameters": parameters,
        "loss": loss,
    }


def _has_bfloat16() -> bool:
    from tasks.torch_setup import has_bfloat16

    return has_bfloat16()


def _examples(workload: Training) -> tuple[Any, list[int]]:
    """The same sentences in batches of as many targets, as Hugging Face takes them, and the targets of each."""
    from tasks.language_model.settings import TrainingSettings
    from tasks.language_model.training import TextBatches

    settings = TrainingSettings(batch_tokens=workload.batch_tokens)
    batches = TextBatches(zipf_text(workload), workload.architecture("sentence"), settings, SEED)
    examples, targets = [], []
    for batch, _ in batches:
        examples.append(as_labels(batch))
        targets.append(len(batch.targets))
    return examples, targets
