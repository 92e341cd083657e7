"""Training: what is learned, what the baselines mean, the same seed the same bytes."""

import json
import math

import pytest
import torch

from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training import train
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import MASK_ID, START_ID

SETTINGS = TrainingSettings(
    epochs=3.0, batch_tokens=64, learning_rate=0.02, dropout=0.0, precision="float32", warmup_share=0.1
)


def weights(model: TransformerLanguageModel) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def next_token(model: TransformerLanguageModel, tokens: list[int]) -> torch.Tensor:
    """Probabilities (V,) of the token after ``tokens``."""
    with torch.no_grad():
        return model.logits(torch.tensor([tokens]))[0, -1].softmax(0)


def test_a_model_learns_what_the_text_repeats(encoded, small_model, vocabulary):
    model = small_model()
    logged: list[tuple[int, dict[str, float]]] = []
    text, valid = encoded(["a b c d"] * 400), encoded(["a b c d"] * 3)
    record = train(
        model, text, SETTINGS, seed=1, valid=valid, on_log=lambda *point: logged.append(point), log_every_steps=40
    )
    a, b, c = (vocabulary.ids[word] for word in "abc")
    assert next_token(model, [START_ID, a, b])[c] > 0.95
    assert record.tokens == 3 * 400 * 5
    assert record.steps == 3 * 34  # twelve sentences of five targets fit into 64
    # Before training and after each of three epochs.
    valid = {(point["step"], point["epoch"]): point["valid_loss"] for point in record.curve if "valid_loss" in point}
    assert list(valid) == [(0, 0.0), (34, 1.0), (68, 2.0), (102, 3.0)]
    assert valid[0, 0.0] == pytest.approx(math.log(len(vocabulary)), abs=0.2)
    assert valid[102, 3.0] < 0.1
    assert [point["step"] for point in record.curve if "train_loss" in point] == [40, 80, 102]
    # The curve is logged as it grows.
    assert [step for step, values in logged if "train_loss" in values] == [40, 80, 102]
    assert [step for step, values in logged if "valid_loss" in values] == [0, 34, 68, 102]
    json.dumps(record.curve, allow_nan=False)


def test_baseline1_never_learns_to_predict_a_marker_and_baseline0_does(encoded, small_model, vocabulary):
    lines = ["a [MASK] b"] * 600
    a, b = vocabulary.ids["a"], vocabulary.ids["b"]
    zero, one = small_model(), small_model()
    train(zero, encoded(lines, "token"), SETTINGS, 1)
    train(one, encoded(lines, "ignore"), SETTINGS, 1)
    assert next_token(zero, [START_ID, a])[MASK_ID] > 0.95
    assert next_token(one, [START_ID, a])[MASK_ID] < 0.05
    # Both have read the marker: they know what stands behind it.
    for model in (zero, one):
        assert next_token(model, [START_ID, a, MASK_ID])[b] > 0.9


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
