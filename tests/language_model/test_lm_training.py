"""The word Transformer: the same bytes when its training is resumed, and the scores and gradients of its peers."""

import math
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import torch
from torch.nn import functional

from benchmarks.language_model import Size, peer_of
from tasks.errors import ModelError
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training import TextBatches, summed_loss, train
from tasks.language_model.transformer import chunked_cross_entropy as module
from tasks.language_model.transformer.batching import divide, make_batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import load_model, save_model
from tasks.language_model.transformer.packing import make_packed_batch, pack
from tasks.language_model.transformer.processor_products import EXACT_WORDS, blockwise_log_probabilities
from tasks.training.stage import Checkpoints

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 15
SETTINGS = TrainingSettings(epochs=2.5, batch_tokens=64, learning_rate=0.02, dropout=0.3, precision="float32")
KINDS = {
    "patience": {"patience": 3, "validate_every_steps": 2, "learning_rate": 0.1, "accumulate": 2, "epochs": 5.0},
    "plain": {},
    "packed in parts": {"accumulate": 3},
    "bfloat16": {"precision": "bfloat16"},
}
KILLS = [("patience", 0.25), ("patience", 0.55), ("plain", 0.05), ("plain", 0.7), ("packed in parts", 0.95)]
KILLS += [("bfloat16", 0.4)]
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


# The Transformer, its loss and its folder -------------------------------------------------------------------------


def test_scores_and_gradients_equal_those_of_gpt2_with_the_same_weights(small_model):
    model = small_model(seed=3, layers=2, width=16, maximum_tokens=12)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():  # biases and norms away from 0 and 1, so that each of them counts
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    tokens = torch.randint(0, model.embedding.num_embeddings, (3, 12), generator=torch.Generator().manual_seed(1))
    size = Size(model.embedding.num_embeddings, 16, layers=2, heads=2, maximum_tokens=12)
    peer = peer_of(size, model.eval()).eval()
    ours, theirs = model.logits(tokens), peer(tokens).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    (ours**2).mean().backward()
    (theirs**2).mean().backward()
    torch.testing.assert_close(model.embedding.weight.grad, peer.transformer.wte.weight.grad, rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(model.logits(tokens), theirs, rtol=1e-4, atol=1e-4)


def test_loss_and_gradients_equal_the_ordinary_ones(monkeypatch):
    """Hidden states (11, 6), projection (23, 6), targets (11,), weights (11,), in chunks of 4 and rows of 3."""
    monkeypatch.setattr(module, "CHUNK_POSITIONS", 4)
    monkeypatch.setattr(module, "ROWS_IN_CACHE", 3)
    generator = torch.Generator().manual_seed(7)
    hidden = torch.randn(11, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    projection = torch.randn(23, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    targets = torch.randint(0, 23, (11,), generator=generator)
    targets[5] = targets[4]  # the same target twice: its gradients add up
    weights = torch.rand(11, dtype=torch.float64, generator=generator)
    weights[2] = 0.0
    ordinary = (functional.cross_entropy(hidden @ projection.t(), targets, reduction="none") * weights).sum()
    expected = torch.autograd.grad(ordinary * 3, (hidden, projection))
    ours = chunked_cross_entropy(hidden, projection, targets, weights)
    found = torch.autograd.grad(ours * 3, (hidden, projection))
    torch.testing.assert_close(ours, ordinary, rtol=1e-12, atol=1e-12)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    scores = chunked_log_probabilities(hidden, projection, targets)
    expected = torch.log_softmax(hidden @ projection.t(), dim=1)[torch.arange(11), targets]
    torch.testing.assert_close(scores, expected.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("words", [5000, 25_000])
def test_scores_by_blocks_of_words_are_the_ordinary_ones(words):
    """Of a large vocabulary the many rare words are rounded, which have little of the probability."""
    generator = torch.Generator().manual_seed(2)
    hidden, projection = (torch.randn(count, 16, generator=generator) for count in (40, words))
    projection[EXACT_WORDS:] *= 0.2
    expected = (hidden @ projection.t()).log_softmax(1)
    for targets in (expected.argmax(1), torch.randint(0, words, (40,), generator=generator)):
        found = blockwise_log_probabilities(hidden, projection, targets)
        torch.testing.assert_close(found, expected[torch.arange(40), targets], rtol=0, atol=1e-4)


@pytest.fixture
def folder(tmp_path, small_model, vocabulary):
    save_model(tmp_path / "model", small_model(), vocabulary)
    return tmp_path / "model"


DAMAGED = r"is damaged .* its hash is [0-9a-f]{12}, .* saved with [0-9a-f]{12}"
NEXT_FORMAT = b'{"format": 9, "kind": "transformer", "architecture": {}, "vocabulary": "", "weights": ""}'


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.safetensors", lambda content: content[:-1] + bytes([content[-1] ^ 1]), DAMAGED),
        ("model.safetensors", None, r"holds no 'model.safetensors'"),
        ("settings.json", lambda content: NEXT_FORMAT, "format 9"),
        ("settings.json", lambda content: b'{"kind": "ngram"}', r"is of kind 'ngram'; give one of kind 'transformer'"),
    ],
    ids=["damaged", "no weights", "next format", "other kind"],
)
def test_what_is_damaged_or_no_model_is_refused(folder, name, change, message):
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if change:
        (folder / name).write_bytes(change(content))
    with pytest.raises(ModelError, match=message):
        load_model(folder)
    with pytest.raises(ModelError, match="'palimpsest pretrain' or 'adapt' makes one"):
        load_model(folder / "nowhere")
