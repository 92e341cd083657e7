"""Training goes on exactly where it was, whatever ended it; steps are divided among processes without a rest."""

import math
import multiprocessing
import os
import signal
import time
from itertools import chain

import numpy as np
import pytest
import torch

from tasks.errors import ModelError
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.training import TextBatches, summed_loss, train
from tasks.training.ranks import RankPlan
from tasks.training.stage import Checkpoints

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 30
SETTINGS = TrainingSettings(epochs=2.5, batch_tokens=64, learning_rate=0.02, dropout=0.3, precision="float32")
KINDS = {
    "patience": ("sentence", {"patience": 3, "validate_every_steps": 2, "learning_rate": 0.1, "accumulate": 2}),
    "plain": ("sentence", {}),
    "packed in parts": ("packed", {"accumulate": 3}),
    "bfloat16": ("sentence", {"precision": "bfloat16"}),
}
KILLS = [(kind, share) for kind in KINDS for share in np.random.default_rng(1).uniform(0.05, 1, 3).round(2)][:10]
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def runs(encoded, small_model, tmp_path):
    """Trains the same model on the same text; returns it and its record."""
    text, valid = encoded(LINES), encoded(["a b", "c d c"])

    def run(kind="plain", kill_at=0, every=0, seed=1, seconds=0.0):
        context, changes = KINDS[kind]
        model = small_model()
        model.architecture = model.architecture.model_copy(update={"context": context})
        last = tmp_path / "work" / "last.ckpt"
        checkpoints = Checkpoints(last, str(seed), every, seconds, str(last) if last.exists() else None)

        def log(step, values):
            if 0 < kill_at <= step and "train_loss" in values:
                os.kill(os.getpid(), signal.SIGKILL)

        settings = SETTINGS.model_copy(update=changes)
        record = train(model, text, settings, seed, valid=valid, checkpoints=checkpoints, log_every_steps=2, on_log=log)
        return model, record

    return run


def same(one, other):
    return all(map(torch.equal, one.parameters(), other.parameters()))


def killed(*arguments):
    process = FORK.Process(target=arguments[0], args=arguments[1:])
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(("kind", "share"), KILLS)
def test_a_run_killed_at_a_random_step_goes_on_to_the_same_curve_and_the_same_bytes(runs, kind, share):
    whole, record = runs(kind)
    step = math.ceil(share * record.steps)
    every = 1 if kind == "patience" else 3
    killed(runs, kind, step, every)
    step = min(step + step % 2, record.steps)  # every other one is logged
    model, second = runs(kind, every=every)
    assert second.resumed_step == ((step - 1) // every * every or None)
    for name in ("curve", "steps", "tokens", "best_step", "stopped_early"):
        assert getattr(second, name) == getattr(record, name)
    assert same(model, whole)
    # Killed after the last checkpoint, before the model was written.
    model, third = runs(kind, every=every)
    assert (third.curve, third.stopped_early) == (record.curve, record.stopped_early)
    assert same(model, whole)


def test_patience_ends_a_run_and_gives_the_weights_of_the_smallest_loss(runs, encoded):
    model, record = runs("patience")
    losses = [point["valid_loss"] for point in record.curve if "valid_loss" in point]
    best = losses.index(min(losses))
    assert (record.stopped_early, record.best_step, len(losses)) == (True, 2 * best, best + 1 + 3)
    loss, targets = summed_loss(model, encoded(["a b", "c d c"]))
    assert loss / targets == pytest.approx(losses[best], abs=1e-6) != losses[-1]


def test_checkpoints_by_time_lie_between_steps(runs, monkeypatch):
    """The second part of each step is late: a checkpoint then would lack the gradients of the first two."""
    whole, record = runs("packed in parts")
    batch = TextBatches._batch

    def late(self, number):
        time.sleep(0.2 * (number % 3 == 1))
        return batch(self, number)

    monkeypatch.setattr(TextBatches, "_batch", late)
    killed(runs, "packed in parts", 5, 0, 1, 0.1)
    monkeypatch.undo()
    model, second = runs("packed in parts")
    assert second.resumed_step == 5
    assert second.curve == record.curve
    assert same(model, whole)


def test_a_checkpoint_has_to_be_whole_and_to_belong_to_the_run(runs, tmp_path):
    killed(runs, "plain", 6, 4)
    with pytest.raises(ModelError, match="of another vocabulary, architecture, text"):
        runs(seed=2)
    (tmp_path / "work" / "last.ckpt").write_bytes(b"torn")
    with pytest.raises(ModelError, match="is missing, damaged, or"):
        runs()


@pytest.mark.parametrize("context", ["sentence", "packed"])
def test_the_parts_of_a_step_are_its_targets_once(encoded, context):
    text = encoded(LINES)
    architecture = ArchitectureSettings(layers=1, heads=1, width=8, maximum_tokens=16, context=context)

    def steps(plan: RankPlan, accumulate: int) -> list[list[int]]:
        settings = SETTINGS.model_copy(update={"epochs": 1.0, "batch_tokens": 40, "accumulate": accumulate})
        parts = [batch.targets.tolist() for batch, _ in TextBatches(text, architecture, settings, 1, plan)]
        return [list(chain(*parts[begin : begin + accumulate])) for begin in range(0, len(parts), accumulate)]

    whole = [sorted(targets) for targets in steps(RankPlan(), 1)]
    for ranks in (1, 2, 5):
        for accumulate in (1, 4):
            divided = [steps(RankPlan(rank, ranks, ranks, strategy="ddp"), accumulate) for rank in range(ranks)]
            assert [sorted(chain(*parts)) for parts in zip(*divided, strict=True)] == whole
