"""Training of the word Transformer: the same bytes when it is resumed, the same steps in parts and by processes."""

import math
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import torch

from tasks.errors import ModelError
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training import TextBatches, summed_loss, train
from tasks.language_model.transformer.batching import divide, make_batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_log_probabilities
from tasks.language_model.transformer.packing import make_packed_batch, pack
from tasks.training.stage import Checkpoints

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 15
SETTINGS = TrainingSettings(epochs=2.5, batch_tokens=64, learning_rate=0.02, dropout=0.3, precision="float32")
KINDS = {
    "patience": {"patience": 3, "validate_every_steps": 2, "learning_rate": 0.1, "accumulate": 2, "epochs": 5.0},
    "plain": {},
    "packed in parts": {"accumulate": 3},
    "bfloat16": {"precision": "bfloat16"},
}
KILLS = [("patience", 0.25), ("patience", 0.55), ("plain", 0.05), ("plain", 0.9), ("packed in parts", 0.2)]
KILLS += [("packed in parts", 0.95), ("bfloat16", 0.4)]
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def runs(encoded, small_model, tmp_path):
    """Trains the same model on the same text; returns it and its record."""
    text, valid = encoded(LINES), encoded(["a b", "c d c"])

    def run(kind="plain", kill_at=0, every=0, seed=1, seconds=0.0):
        model = small_model(context="packed" if kind.startswith("packed") else "sentence")
        last = tmp_path / "work" / "last.ckpt"
        checkpoints = Checkpoints(last, str(seed), every, seconds, str(last) if last.exists() else None)

        def log(step, values):
            if 0 < kill_at <= step and "train_loss" in values:
                os.kill(os.getpid(), signal.SIGKILL)

        settings, state = SETTINGS.model_copy(update=KINDS[kind]), torch.random.get_rng_state()
        record = train(model, text, settings, seed, valid=valid, checkpoints=checkpoints, log_every_steps=2, on_log=log)
        assert torch.equal(torch.random.get_rng_state(), state), "of the caller"
        return model, record

    return run


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def killed(run, *arguments):
    process = FORK.Process(target=run, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(("kind", "share"), KILLS)
def test_a_run_killed_at_any_step_goes_on_to_the_same_curve_and_the_same_bytes(runs, kind, share):
    whole, record = runs(kind)
    torch.manual_seed(7)  # the state around the training does not count
    step = math.ceil(share * record.steps)
    every = 1 if kind == "patience" else 3
    killed(runs, kind, step, every)
    step = min(step + step % 2, record.steps)  # every other one is logged
    # Then as if it were killed after the last checkpoint, before the model was written.
    for resumed in ((step - 1) // every * every or None, record.steps // every * every):
        model, second = runs(kind, every=every)
        assert second.resumed_step == resumed
        for name in ("curve", "steps", "tokens", "best_step", "stopped_early"):
            assert getattr(second, name) == getattr(record, name)
        assert torch.equal(weights(model), weights(whole))


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
    assert torch.equal(weights(model), weights(whole))


def test_a_checkpoint_has_to_be_whole_and_to_belong_to_the_run(runs, tmp_path):
    killed(runs, "plain", 6, 4)
    with pytest.raises(ModelError, match="of another vocabulary, architecture, text"):
        runs(seed=2)
    (tmp_path / "work" / "last.ckpt").write_bytes(b"torn")
    with pytest.raises(ModelError, match="is missing, damaged, or"):
        runs()


def test_a_batch_in_parts_is_the_whole_batch(encoded, small_model):
    text, results = encoded(LINES), []
    for parts in (1, 3, 50):  # fifty: more parts than a batch has sentences
        model, changes = small_model(), {"accumulate": parts, "dropout": 0.0, "epochs": 1.0}
        settings = SETTINGS.model_copy(update=changes)
        results.append((train(model, text, settings, 1, valid=text, log_every_steps=1), weights(model)))
    (whole, whole_weights), *others = results
    for divided, divided_weights in others:
        assert (divided.steps, divided.tokens) == (whole.steps, whole.tokens)
        for point, other in zip(whole.curve, divided.curve, strict=True):
            assert point == pytest.approx(other, abs=1e-5)
        assert torch.allclose(whole_weights, divided_weights, atol=1e-4)


@pytest.mark.parametrize("markers", ["token", "ignore"])
@pytest.mark.parametrize("gradients", [True, False])  # two ways to compute attention
def test_packed_sentences_have_the_losses_of_sentences_alone(encoded, small_model, markers, gradients):
    model = small_model(layers=2, width=16, maximum_tokens=16, context="packed")
    text = encoded([*["a b c d", "d c", "b", "a a a b c d a", "c d b a c", "a b"] * 5, "a [MASK] b", "[MASK]"], markers)
    windows, is_target = divide(text, 16), text.is_target()
    rows = pack(np.arange(len(windows)), windows.length, 16)
    losses = []
    for batch, chosen in (
        (make_packed_batch(text, is_target, windows, rows), np.concatenate(rows)),
        (make_batch(text, is_target, windows, np.arange(len(windows))), np.arange(len(windows))),
    ):
        with torch.set_grad_enabled(gradients):
            hidden = model(batch.tokens, batch.places, batch.segments).flatten(0, 1).index_select(0, batch.positions)
        scores = chunked_log_probabilities(hidden.detach(), model.embedding.weight, batch.targets)
        losses.append(torch.cat([-scores[batch.rows == number] for number in np.argsort(chosen).tolist()]))
    assert len(losses[0]) == is_target.sum()
    assert torch.allclose(*losses, atol=1e-5, rtol=0)
