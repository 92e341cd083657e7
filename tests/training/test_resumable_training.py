"""The loop that all trainings share, on a model whose losses are known: each batch says what its loss is."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tasks.cli import load_command
from tasks.errors import ModelError
from tasks.files.work_folder import WorkFolder
from tasks.training.checkpoints import CheckpointStore, checkpoints_in, read_checkpoint
from tasks.training.fitting import fit
from tasks.training.ranks.plan import RankPlan
from tasks.training.record import StepLosses, TrainingRecord
from tasks.training.resumable_training import ResumableTraining

IDENTITY = {"vocabulary": "v", "architecture": "a", "order": "o"}


@dataclass(frozen=True)
class Settings:
    learning_rate: float = 0.1
    warmup_share: float = 0.0
    weight_decay: float = 0.0
    gradient_clip: float = 1.0
    validate_every_steps: int = 0
    precision: str = "float32"


@dataclass(frozen=True)
class Batch:
    losses: tuple[float, float]
    index: int
    ends_epoch: bool
    epoch: int = 0
    epochs_done: float = 1.0

    def to(self, device: Any) -> "Batch":
        return self


class Batches:
    seed = 1

    def __init__(self, *losses: tuple[float, float]) -> None:
        self.losses, self.start = losses, (0, 0)

    def __iter__(self) -> Iterator[Batch]:
        for index in range(self.start[1], len(self.losses) if self.start[0] == 0 else 0):
            yield Batch(self.losses[index], index, index == len(self.losses) - 1)


class KnownLosses(ResumableTraining):
    """Two targets a step; the second loss is logged beside the first."""

    def training_step(self, batch: Batch, batch_index: int) -> torch.Tensor:
        first, second = (self.model(torch.zeros(1)).sum() + loss for loss in batch.losses)
        self.losses.add(self.record.steps + 1, first, second.detach(), divisor=2)
        return first

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_index: int) -> None:
        self.end_step(batch, targets=2)

    def validate(self, epochs_done: float) -> None:
        self.add_point({"valid_loss": 0.0}, epoch=epochs_done)


def train(folder: Path, *losses: tuple[float, float], break_after: int = 0) -> TrainingRecord:
    """With a point of the curve every two steps, and a checkpoint every three."""

    def on_log(step: int, values: dict[str, float]) -> None:
        if step == break_after:
            raise RuntimeError("the power is gone")

    store = CheckpointStore(IDENTITY, WorkFolder(folder / "work", "model", "key"), every_steps=3)
    try:
        return fit(
            lambda run: KnownLosses(
                nn.Linear(1, 1, bias=False), Settings(), Batches(*losses), None, run, TrainingRecord(), ["one", "two"]
            ),
            len(losses),
            title="known losses",
            seed=1,
            on_log=on_log,
            log_every_steps=2,
            plan=RankPlan(),
            store=store,
        ).record
    finally:
        store.close()


FOUR = ((1.0, 10.0), (3.0, 20.0), (5.0, 30.0), (7.0, 50.0))


def test_a_point_of_the_curve_is_the_mean_since_the_last(tmp_path):
    record = train(tmp_path, *FOUR)
    assert [(point["step"], point["one"], point["two"]) for point in record.curve] == [(2, 2, 15), (4, 6, 40)]
    assert (record.steps, record.tokens, record.resumed_step) == (4, 8, None)
    # Half a cosine from the peak down: after 1 of 4 steps and after 3 of 4.
    assert [point["learning_rate"] for point in record.curve] == pytest.approx([0.0853553, 0.0146447], abs=1e-6)


def test_it_goes_on_in_the_middle_of_a_point(tmp_path, capsys):
    with pytest.raises(RuntimeError, match="power"):
        train(tmp_path, *FOUR, break_after=4)
    (path,) = checkpoints_in(next((tmp_path / "work").iterdir()))
    state = read_checkpoint(path).state
    # Step 3 alone: its losses times two targets each, and the targets.
    assert (state["step"], state["interval"], state["next_batch"]) == (3, [10.0, 60.0, 2], [0, 3])
    record = train(tmp_path, *FOUR)
    assert "goes on from the checkpoint after step 3 of 4" in capsys.readouterr().err
    assert record.resumed_step == 3
    assert [(point["step"], point["one"], point["two"]) for point in record.curve] == [(2, 2, 15), (4, 6, 40)]


def test_a_loss_that_is_no_number_ends_it(tmp_path):
    message = r"the training loss is not a number at step 2 of 3; there is no checkpoint yet\. Give a smaller"
    with pytest.raises(ModelError, match=message):
        train(tmp_path, (1.0, 1.0), (float("nan"), 1.0), (1.0, 1.0))


def test_losses_are_added_up_once_read():
    losses = StepLosses(["one", "two"])
    losses.add(1, torch.tensor(1.0), torch.tensor(2.0), divisor=3)
    losses.add(2, torch.tensor(4.0), torch.tensor(float("inf")), divisor=1)
    assert losses.totals == {"one": 0, "two": 0}
    losses.read()
    losses.read()
    assert losses.totals == {"one": 7, "two": float("inf")}
    assert losses.faulty_step == 0
    losses.begin_again([5.0], targets=2)
    assert (losses.totals, losses.targets) == ({"one": 5, "two": 0}, 2)


def test_commands_that_train_go_to_further_processes():
    for name in ("adapt", "pretrain", "train-recogniser", "unit-language-model"):
        command = load_command(name).COMMAND
        assert pickle.loads(pickle.dumps(command)).stage is command.stage
