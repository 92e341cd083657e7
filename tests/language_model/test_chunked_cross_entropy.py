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


def test_what_a_gpu_takes_in_one_kernel_is_the_same(example):
    hidden, projection, targets, _ = (tensor.detach() for tensor in example)
    buffer = torch.empty(11, 23, dtype=torch.float64)
    shares, log_sums = module._shares(hidden, projection, targets, buffer)
    scores = hidden @ projection.t()
    torch.testing.assert_close(shares, scores.softmax(1), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(log_sums, scores.logsumexp(1).float())
    # The share of a word may be less than the smallest number.
    assert module._shares(1e4 * hidden, projection, targets, buffer)[1].isfinite().all()


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


def test_bfloat16_products_stay_near_float32():
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(600, 64, generator=generator, requires_grad=True)
    projection = (torch.randn(1000, 64, generator=generator) * 0.1).requires_grad_()
    targets = torch.randint(0, 1000, (600,), generator=generator)
    exact = chunked_cross_entropy(hidden, projection, targets) / 600
    rounded = chunked_cross_entropy(hidden, projection, targets, arithmetic=torch.bfloat16) / 600
    assert rounded.dtype == torch.float32
    assert abs(exact.item() - rounded.item()) < 1e-3
    for one, other in zip(
        torch.autograd.grad(rounded, (hidden, projection)),
        torch.autograd.grad(exact, (hidden, projection)),
        strict=True,
    ):
        assert functional.cosine_similarity(one.flatten(), other.flatten(), dim=0) > 0.9999


def test_memory_holds_no_full_table_of_scores():
    """The wide tensors that the loss makes are chunks: none has all positions, or is kept for the backward pass."""
    positions, width, words = 8 * module.CHUNK_POSITIONS, 4, 500
    hidden = torch.randn(positions, width, requires_grad=True)
    projection = torch.randn(words, width, requires_grad=True)
    loss = chunked_cross_entropy(hidden, projection, torch.zeros(positions, dtype=torch.long))
    kept = sum(tensor.numel() for tensor in loss.grad_fn.saved_tensors)
    assert kept == positions * width + words * width
    with torch.profiler.profile(profile_memory=True) as profile:
        chunked_cross_entropy(hidden, projection, torch.zeros(positions, dtype=torch.long))
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert 0 < largest <= module.CHUNK_POSITIONS * words * 4
