"""The loss without the full table of scores against the ordinary one."""

import pytest
import torch
from torch.nn import functional

from tasks.language_model.transformer import chunked_cross_entropy as module
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, ...]:
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
    return hidden, projection, targets, weights


def test_loss_and_gradients_equal_the_ordinary_ones(example):
    hidden, projection, targets, weights = example
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


def test_a_weight_of_zero_is_as_if_the_position_were_not_there(example):
    hidden, projection, targets, _ = example
    kept = torch.arange(11) != 2
    weights = kept.to(torch.float64)
    whole = chunked_cross_entropy(hidden, projection, targets, weights)
    part = chunked_cross_entropy(hidden[kept], projection, targets[kept])
    torch.testing.assert_close(whole, part, rtol=1e-12, atol=1e-12)
    gradient = torch.autograd.grad(whole, hidden)[0]
    assert gradient[2].eq(0).all()
    assert gradient[1].ne(0).all()
