"""The transducer's loss against a plain double loop over the lattice."""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.speech.recogniser.transducer_loss import transducer_loss


def ragged_batch(frames, lengths, symbols, blank=0, seed=0):
    """Random logits and targets of a ragged batch, with large numbers and impossible ids as padding."""
    generator = torch.Generator().manual_seed(seed)
    shape = len(frames), max(frames), max(lengths) + 1, symbols
    logits = torch.randn(shape, generator=generator, dtype=torch.float64)
    targets = torch.randint(symbols - 1, (len(frames), max(lengths)), generator=generator)
    targets += targets >= blank
    for index, (time, length) in enumerate(zip(frames, lengths, strict=True)):
        logits[index, time:] = 1e3
        logits[index, :, length + 1 :] = 1e3
        targets[index, length:] = -7
    return logits, targets, torch.tensor(frames), torch.tensor(lengths)


def double_loop(scores, labels, blank):
    """Minus the log-likelihood by the forward variables, differentiable, one node after the other."""
    logs = scores.log_softmax(-1)
    alpha = {(0, 0): logs.new_zeros(())}
    for t in range(len(scores)):
        for u in range(len(labels) + 1):
            arriving = [alpha[t - 1, u] + logs[t - 1, u, blank]] if t else []
            if u:
                arriving.append(alpha[t, u - 1] + logs[t, u - 1, labels[u - 1]])
            if arriving:
                alpha[t, u] = torch.logsumexp(torch.stack(arriving), 0)
    return -(alpha[len(scores) - 1, len(labels)] + logs[len(scores) - 1, len(labels), blank])


@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=4),
    symbols=st.integers(2, 6),
    seed=st.integers(0, 2**20),
    data=st.data(),
)
def test_loss_and_gradient_equal_a_double_loop(shape, symbols, seed, data):
    blank = data.draw(st.integers(0, symbols - 1))
    logits, targets, frames, lengths = ragged_batch(*map(list, zip(*shape, strict=True)), symbols, blank, seed)
    weights = torch.randn(len(shape), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    ours = logits.clone().requires_grad_()
    losses = transducer_loss(ours, targets, frames, lengths, blank)
    (losses * weights).sum().backward()
    for index, (time, length) in enumerate(shape):
        scores = logits[index, :time, : length + 1].clone().requires_grad_()
        expected = double_loop(scores, targets[index, :length].tolist(), blank)
        (expected * weights[index]).backward()
        torch.testing.assert_close(losses[index], expected, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(ours.grad[index, :time, : length + 1], scores.grad, atol=1e-9, rtol=1e-9)
        assert not ours.grad[index, time:].any()
        assert not ours.grad[index, :, length + 1 :].any()


def test_symbols_may_be_impossible():
    logits, targets, frames, lengths = ragged_batch([3], [1], 4)
    targets[0, 0] = 1
    logits[..., 2] = -math.inf
    scores = logits.clone().requires_grad_()
    transducer_loss(scores, targets, frames, lengths, 0).backward()
    assert scores.grad.isfinite().all()
    assert not scores.grad[..., 2].any()
