"""Settings of a training run: early stopping, accumulation, when to validate, compilation."""

import shutil

import pytest
import torch

from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training import train
from tasks.language_model.transformer.model import TransformerLanguageModel

LINES = ["a b c d", "d c", "b a a", "c d b a c", "a"] * 24
SETTINGS = TrainingSettings(epochs=2.0, batch_tokens=64, learning_rate=0.02, dropout=0.0, precision="float32")
Model = TransformerLanguageModel


def weights(model: Model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_a_batch_in_parts_is_the_whole_batch(encoded, small_model):
    text, results = encoded(LINES), []
    for parts in (1, 3, 50):  # fifty: more parts than a batch has sentences
        model = small_model()
        settings = SETTINGS.model_copy(update={"accumulate": parts})
        results.append((train(model, text, settings, 1, valid=text, log_every_steps=1), weights(model)))
    (whole, whole_weights), *others = results
    for divided, divided_weights in others:
        assert (divided.steps, divided.tokens) == (whole.steps, whole.tokens)
        for point, other in zip(whole.curve, divided.curve, strict=True):
            assert point == pytest.approx(other, abs=1e-5)
        assert torch.allclose(whole_weights, divided_weights, atol=1e-4)


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
