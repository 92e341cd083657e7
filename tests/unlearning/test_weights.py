"""The loss of NPO, held against its formula by automatic differentiation; and the methods by name."""

import pytest
import torch

from tasks.errors import ParameterError
from tasks.unlearning.methods import METHODS, settings_named
from tasks.unlearning.methods.negative_preference import NegativePreference

SENTENCE = torch.tensor([0, 0, 0, 1, 1])
NOW = torch.tensor([-1.0, -0.5, -2.0, -4.0, -0.1], dtype=torch.float64)
BEFORE = torch.tensor([-1.5, -0.5, -1.0, -0.3, -0.2], dtype=torch.float64)


def gradient(loss):
    """Of a loss in log-probabilities (N,), by the weights that stand before -log p: their negatives."""
    now = NOW.clone().requires_grad_()
    loss(now).backward()
    return -now.grad


def sums(values):
    return torch.stack([values[:3].sum(), values[3:].sum()])


def test_npo_is_the_papers_loss_and_begins_as_gradient_ascent():
    method = NegativePreference(kind="negative_preference", beta=0.7)

    def loss(now):
        return -2 / 0.7 * torch.nn.functional.logsigmoid(-0.7 * (sums(now) - sums(BEFORE))).sum()

    torch.testing.assert_close(method.weights(NOW, BEFORE, SENTENCE), gradient(loss))
    first = method.weights(BEFORE, BEFORE, SENTENCE)
    torch.testing.assert_close(first, torch.full_like(NOW, -1.0))


def test_a_name_that_is_none_is_refused_with_the_nearest():
    assert settings_named("steering") == {"kind": "steering"}
    with pytest.raises(ParameterError, match=r"'stearing' is not known \(did you mean 'steering'"):
        settings_named("stearing")
    assert {method.title for method in METHODS.values()} >= {"NPO", "LM-Steer"}
