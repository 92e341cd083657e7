"""Training: the same seed the same bytes, accumulation, and what a position attends to."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.training import train
from tasks.language_model.transformer.batching import divide, make_batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_log_probabilities
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.packing import make_packed_batch, pack
from tasks.language_model.vocabulary import Vocabulary

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


def test_the_gradient_is_clipped(encoded, small_model):
    lengths = []
    for longest in (1e6, 1e-3):
        model, changes = small_model(), {"gradient_clip": longest, "batch_tokens": 4000, "epochs": 1.0}
        train(model, encoded(LINES), SETTINGS.model_copy(update=changes), 1)
        lengths.append(float(torch.cat([weight.grad.flatten() for weight in model.parameters()]).norm()))
    assert lengths[0] > 0.01
    assert lengths[1] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_seed_gives_the_same_weights(encoded, small_model, precision):
    settings = SETTINGS.model_copy(update={"dropout": 0.3, "precision": precision, "epochs": 1.5})
    text = encoded(["a b c", "d d", "b c d a", "c"] * 20)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(results))  # the state around the training does not count
        model = small_model()
        before = torch.random.get_rng_state()
        train(model, text, settings, seed)
        assert torch.equal(torch.random.get_rng_state(), before)
        results.append(weights(model))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


PACKED_LINES = ["a b c d", "d c", "b", "a a a b c d a", "c d b a c", "a b"] * 5


@pytest.fixture
def model_of(vocabulary: Vocabulary) -> Callable[..., Model]:
    def make(context: str, seed: int = 1, maximum_tokens: int = 16) -> Model:
        architecture = ArchitectureSettings(layers=2, heads=2, width=16, maximum_tokens=maximum_tokens, context=context)
        model = Model(architecture, len(vocabulary))
        model.initialise(seed)
        return model

    return make


def losses_by_target(model: Model, text: EncodedText, packed: bool, gradients: bool) -> torch.Tensor:
    """Negative log-probability of each target, in the order of the text."""
    windows, is_target = divide(text, 16), text.is_target()
    everything = np.arange(len(windows))
    if packed:
        rows = pack(everything, windows.length, 16)
        batch, chosen = make_packed_batch(text, is_target, windows, rows), np.concatenate(rows)
    else:
        batch, chosen = make_batch(text, is_target, windows, everything), everything
    with torch.set_grad_enabled(gradients):
        hidden = model(batch.tokens, batch.places, batch.segments).flatten(0, 1).index_select(0, batch.positions)
    scores = chunked_log_probabilities(hidden.detach(), model.embedding.weight, batch.targets)
    return torch.cat([-scores[batch.rows == number] for number in np.argsort(chosen).tolist()])


def test_packed_sentences_have_the_losses_of_sentences_alone(encoded, model_of):
    model = model_of("packed")
    for markers in ("token", "ignore"):
        text = encoded([*PACKED_LINES, "a [MASK] b", "[MASK]"], markers)
        for gradients in (True, False):  # two ways to compute attention
            alone, packed = (losses_by_target(model, text, way, gradients) for way in (False, True))
            assert len(alone) == text.is_target().sum()
            assert torch.allclose(alone, packed, atol=1e-5, rtol=0)


def test_packed_gradients_are_those_of_sentences_alone(encoded, model_of):
    """One step with all sentences in one batch: the same loss and the same weights after it."""
    settings = TrainingSettings(epochs=1.0, batch_tokens=4000, learning_rate=0.01, dropout=0.0, precision="float32")
    text, results = encoded(PACKED_LINES), []
    for context in ("sentence", "packed"):
        model = model_of(context)
        record = train(model, text, settings, 1)
        assert record.steps == 1
        gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        results.append((record.curve[-1]["train_loss"], gradients))
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-5)
    assert torch.allclose(results[0][1], results[1][1], atol=1e-6)
