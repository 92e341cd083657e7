"""The losses of gradient methods: what each says of a target, held against its formula by automatic differentiation."""

import pytest
import torch
from pydantic import ValidationError

from tasks.errors import ParameterError
from tasks.unlearning.method import ForgetBatch
from tasks.unlearning.methods import METHODS, settings_named
from tasks.unlearning.methods.gradient_difference import GradientDifference
from tasks.unlearning.methods.negative_preference import NegativePreference
from tasks.unlearning.methods.private_words import PrivateWords
from tasks.unlearning.methods.simple_negative_preference import SimpleNegativePreference

SENTENCE = torch.tensor([0, 0, 0, 1, 1])
NOW = torch.tensor([-1.0, -0.5, -2.0, -4.0, -0.1], dtype=torch.float64)
BEFORE = torch.tensor([-1.5, -0.5, -1.0, -0.3, -0.2], dtype=torch.float64)
IS_PRIVATE = torch.tensor([True, False, True, True, False])


def batch(now=NOW):
    return ForgetBatch(now, BEFORE, IS_PRIVATE, SENTENCE)


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

    torch.testing.assert_close(method.weights(batch()), gradient(loss))
    first = method.weights(batch(BEFORE))
    torch.testing.assert_close(first, GradientDifference(kind="gradient_difference").weights(batch()))


def test_simnpo_is_the_papers_loss():
    method = SimpleNegativePreference(kind="simple_negative_preference", beta=2.5, gamma=0.3)

    def loss(now):
        means = sums(now) / torch.tensor([3, 2])
        # A mean over two sentences, in the unit of a step: by five targets.
        return -2 / 2.5 * torch.nn.functional.logsigmoid(-2.5 * means - 0.3).mean() * 5

    torch.testing.assert_close(method.weights(batch()), gradient(loss))


def test_the_hinge_leaves_what_is_improbable_enough_and_trains_on_what_is_not_private():
    method = PrivateWords(kind="private_words", forget_weight=2.0, other_weight=1.0, margin=0.2)

    def loss(now):
        return (2 * torch.relu(now - BEFORE + 0.2) * IS_PRIVATE - now * ~IS_PRIVATE).sum()

    torch.testing.assert_close(method.weights(batch()), gradient(loss))


def test_a_name_that_is_none_is_refused_with_the_nearest():
    assert settings_named("overwriting") == {"kind": "overwriting"}
    with pytest.raises(ParameterError, match=r"'overwritting' is not known \(did you mean 'overwriting'"):
        settings_named("overwritting")
    assert {method.title for method in METHODS.values()} >= {"NPO", "Overwriting"}


def test_nobody_attacks_with_text_that_is_not_read():
    with pytest.raises(ValidationError, match="attack_steps 5: overwriting does not read the text to forget"):
        METHODS["overwriting"](kind="overwriting", attack_steps=5)
