"""Settings of a training run: early stopping, accumulation, when to validate, compilation."""

import shutil
from collections.abc import Callable

import pytest
import torch

from tasks.errors import ParameterError, ResourceError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training import check_compiler, train
from tasks.language_model.transformer.model import TransformerLanguageModel

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 24
SETTINGS = TrainingSettings(epochs=2.0, batch_tokens=64, learning_rate=0.02, dropout=0.0, precision="float32")
Model = TransformerLanguageModel
Encode = Callable[..., EncodedText]


def weights(model: Model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def valid_points(curve: list[dict[str, float]]) -> list[tuple[float, float, float]]:
    return [(point["step"], point["epoch"], point["valid_loss"]) for point in curve if "valid_loss" in point]


def test_a_batch_in_parts_is_the_whole_batch(encoded, small_model):
    text, results = encoded(LINES), []
    for parts in (1, 2, 3, 50):  # fifty: more parts than a batch has sentences
        model = small_model()
        settings = SETTINGS.model_copy(update={"accumulate": parts})
        results.append((train(model, text, settings, 1, valid=text, log_every_steps=1), weights(model)))
    (whole, whole_weights), *others = results
    for divided, divided_weights in others:
        assert (divided.steps, divided.tokens) == (whole.steps, whole.tokens)
        for point, other in zip(whole.curve, divided.curve, strict=True):
            assert point == pytest.approx(other, abs=1e-5)
        assert torch.allclose(whole_weights, divided_weights, atol=1e-4)


def test_validation_comes_every_so_many_steps_and_at_the_end(encoded, small_model):
    text = encoded(["a b c"] * 160)  # 640 targets, ten batches of 64 an epoch
    settings = SETTINGS.model_copy(update={"validate_every_steps": 4, "epochs": 1.3})
    record = train(small_model(), text, settings, 1, valid=text)
    assert [(step, epoch) for step, epoch, _ in valid_points(record.curve)] == [
        (0, 0.0),
        (4, 0.4),
        (8, 0.8),
        (12, pytest.approx(1.2)),
        (13, 1.3),
    ]


def test_training_stops_where_the_valid_loss_no_longer_falls_and_keeps_the_best_weights(encoded, small_model):
    """The valid text is another language than the training text: what helps the one soon hurts the other."""
    text, valid = encoded(["a b c d"] * 200), encoded(["d c b a"] * 5)
    settings = SETTINGS.model_copy(update={"epochs": 3.0, "validate_every_steps": 2, "patience": 3})
    model = small_model()
    record = train(model, text, settings, 1, valid=valid)
    points = valid_points(record.curve)
    losses = [loss for _, _, loss in points]
    best = losses.index(min(losses))
    assert record.stopped_early
    assert len(points) == best + 1 + 3
    assert record.steps == points[-1][0] < 51
    assert record.best_step == points[best][0]
    # A model with the kept weights has the smallest loss, not the last one.
    unchanged = SETTINGS.model_copy(update={"learning_rate": 1e-12, "epochs": 0.01})
    again = valid_points(train(model, text, unchanged, 1, valid=valid).curve)[0][2]
    assert again == pytest.approx(losses[best], abs=1e-6)
    assert again < losses[-1]
    with pytest.raises(ParameterError, match="patience is 3 and there is no validation text"):
        train(small_model(), text, settings, 1)


def test_dropout_counts_for_a_model_that_was_read_in(encoded, small_model):
    """A model folder is read in evaluation mode, in which dropout does nothing."""
    results = []
    for dropout in (0.0, 0.5):
        model = small_model().eval()
        train(model, encoded(LINES), SETTINGS.model_copy(update={"dropout": dropout}), 1)
        results.append(weights(model))
        assert not model.training
    assert not torch.allclose(results[0], results[1])


def test_compiling_needs_a_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(
        ResourceError, match=r"compile is on and there is no C\+\+ compiler \(g\+\+, clang\+\+, c\+\+\)"
    ):
        check_compiler()
    monkeypatch.setenv("CXX", "my-compiler")
    with pytest.raises(ResourceError, match="my-compiler"):
        check_compiler()


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="no C++ compiler on this machine")
def test_a_compiled_model_learns_the_same(encoded, small_model):
    text, results = encoded(LINES), []
    for compiled in (False, True):
        model = small_model()
        record = train(model, text, SETTINGS, 1, valid=text, log_every_steps=1, compiled=compiled)
        results.append((record.curve, weights(model)))
        # What is saved and scored is the model itself.
        assert all(block._compiled_call_impl is None for block in model.blocks)
    for point, other in zip(results[0][0], results[1][0], strict=True):
        assert point == pytest.approx(other, abs=1e-5)
    assert torch.allclose(results[0][1], results[1][1], atol=1e-4)


def test_a_text_of_one_line_and_a_window_without_a_target_are_no_errors(encoded, small_model):
    """A long sentence of markers that are no targets: its first windows have nothing to predict."""
    text = encoded(["a"])
    assert train(small_model(), text, SETTINGS.model_copy(update={"epochs": 1.0}), 1, valid=text).steps == 1
    text = encoded([" ".join(["[MASK]"] * 40)], "ignore")
    settings = SETTINGS.model_copy(update={"batch_tokens": 16})
    record = train(small_model(maximum_tokens=8), text, settings, 1, log_every_steps=1)
    assert record.tokens == 2 * 1
    assert all(point["train_loss"] >= 0 for point in record.curve)
