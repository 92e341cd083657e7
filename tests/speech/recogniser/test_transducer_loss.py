"""The transducer's loss against hand-checked values, a plain double loop, and a compiled kernel."""

import itertools
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import ModelError
from tasks.speech.recogniser import transducer_loss as loss_module
from tasks.speech.recogniser.transducer_loss import transducer_loss


def _batch(frames, lengths, symbols, blank=0, seed=0, dtype=torch.float64):
    """Random logits and targets of a ragged batch, with NaN and impossible ids as padding."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(frames), max(frames), max(lengths) + 1, symbols, generator=generator, dtype=dtype)
    targets = torch.randint(symbols - 1, (len(frames), max(lengths)), generator=generator)
    targets += targets >= blank
    for index, (time, length) in enumerate(zip(frames, lengths, strict=True)):
        logits[index, time:] = math.nan
        logits[index, :, length + 1 :] = math.nan
        targets[index, length:] = -7
    return logits, targets, torch.tensor(frames), torch.tensor(lengths)


def _double_loop(scores, labels, blank):
    """Minus the log-likelihood by the forward variables, differentiable, one node after the other."""
    logs = scores.log_softmax(-1)
    alpha = {(0, 0): logs.new_zeros(())}
    for t in range(len(scores)):
        for u in range(len(labels) + 1):
            arriving = []
            if t:
                arriving.append(alpha[t - 1, u] + logs[t - 1, u, blank])
            if u:
                arriving.append(alpha[t, u - 1] + logs[t, u - 1, labels[u - 1]])
            if arriving:
                alpha[t, u] = torch.logsumexp(torch.stack(arriving), 0)
    return -(alpha[len(scores) - 1, len(labels)] + logs[len(scores) - 1, len(labels), blank])


@pytest.mark.parametrize(("time", "length", "symbols"), [(1, 0, 2), (3, 2, 5), (4, 0, 3), (2, 6, 4), (5, 1, 7)])
def test_uniform_scores_give_the_number_of_alignments(time, length, symbols):
    logits = torch.zeros(1, time, length + 1, symbols)
    targets = torch.ones(1, length, dtype=torch.int32)
    loss = transducer_loss(logits, targets, torch.tensor([time]), torch.tensor([length]), 0)
    alignments = math.comb(time + length - 1, length)
    assert loss.item() == pytest.approx((time + length) * math.log(symbols) - math.log(alignments), abs=1e-5)


def test_the_example_of_warp_transducer():
    scores = [
        [[0.1, 0.6, 0.1, 0.1, 0.1], [0.1, 0.1, 0.6, 0.1, 0.1], [0.1, 0.1, 0.2, 0.8, 0.1]],
        [[0.1, 0.6, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.1, 0.1], [0.7, 0.1, 0.2, 0.1, 0.1]],
    ]
    logits = torch.tensor([scores], requires_grad=True)
    loss = transducer_loss(logits, torch.tensor([[1, 2]]), torch.tensor([2]), torch.tensor([2]), 0)
    loss.backward()
    assert loss.item() == pytest.approx(4.495666, abs=1e-6)
    first = torch.tensor([-0.13116688, -0.3999269, 0.17703125, 0.17703125, 0.17703125])
    torch.testing.assert_close(logits.grad[0, 0, 0], first, atol=1e-6, rtol=0)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=4),
    symbols=st.integers(2, 6),
    seed=st.integers(0, 2**20),
    data=st.data(),
)
def test_loss_and_gradient_equal_a_double_loop(shape, symbols, seed, data):
    blank = data.draw(st.integers(0, symbols - 1))
    logits, targets, frames, lengths = _batch(*map(list, zip(*shape, strict=True)), symbols, blank, seed)
    weights = torch.randn(len(shape), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    ours = logits.clone().requires_grad_()
    losses = transducer_loss(ours, targets, frames, lengths, blank)
    (losses * weights).sum().backward()
    for index, (time, length) in enumerate(shape):
        scores = logits[index, :time, : length + 1].clone().requires_grad_()
        expected = _double_loop(scores, targets[index, :length].tolist(), blank)
        (expected * weights[index]).backward()
        torch.testing.assert_close(losses[index], expected, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(ours.grad[index, :time, : length + 1], scores.grad, atol=1e-9, rtol=1e-9)
        assert not ours.grad[index, time:].any()
        assert not ours.grad[index, :, length + 1 :].any()
    # Adding a number to all scores of a node changes nothing, so the gradients of a node add up to nothing.
    assert ours.grad.sum(-1).abs().max() < 1e-9


def test_pieces_of_any_size_give_the_same(monkeypatch):
    found = []
    for size in (1, 9, 40, 10_000):
        monkeypatch.setitem(loss_module._PIECE, "cpu", size)
        logits, targets, frames, lengths = _batch([5, 7], [4, 3], 3)
        logits.requires_grad_()
        loss = transducer_loss(logits, targets, frames, lengths, 0).mean()
        loss.backward()
        found.append((loss.item(), logits.grad))
    for loss, gradient in found[1:]:
        assert loss == found[0][0]
        torch.testing.assert_close(gradient, found[0][1], atol=0, rtol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 4e-3), (torch.float16, 5e-4)])
def test_arithmetic_of_other_types(dtype, tolerance):
    """The gradient is as good as its type can hold; the loss of rounded scores is exact to float32."""
    logits, targets, frames, lengths = _batch([60, 45], [20, 30], 11, dtype=torch.float32)
    rounded = logits.to(dtype).requires_grad_()
    exact = rounded.detach().double().requires_grad_()
    loss, expected = (transducer_loss(scores, targets, frames, lengths, 0).mean() for scores in (rounded, exact))
    loss.backward()
    expected.backward()
    assert loss.dtype == torch.float32
    assert rounded.grad.dtype == dtype
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(rounded.grad.double(), exact.grad, atol=tolerance, rtol=0)


def test_long_utterances_keep_their_precision():
    """2,000 steps of about 3 nats each: the gradient of float32 scores is still right to six digits."""
    logits, targets, frames, lengths = _batch([1900], [100], 20, dtype=torch.float32)
    single, double = logits.clone().requires_grad_(), logits.double().requires_grad_()
    for scores in (single, double):
        transducer_loss(scores, targets, frames, lengths, 0).backward()
    torch.testing.assert_close(single.grad.double(), double.grad, atol=1e-6, rtol=0)


def test_graph_can_be_walked_twice_and_scores_stay_as_they_are():
    logits, targets, frames, lengths = _batch([4], [2], 5)
    before = logits.clone()
    logits.requires_grad_()
    loss = transducer_loss(logits, targets, frames, lengths, 0)
    loss.backward(retain_graph=True)
    once = logits.grad.clone()
    loss.backward()
    torch.testing.assert_close(logits.grad, 2 * once)
    assert torch.equal(logits.detach(), before)


def test_gradient_does_not_depend_on_memory_layout_or_integer_type():
    logits, targets, frames, lengths = _batch([4, 3], [2, 1], 5)
    plain = logits.clone().requires_grad_()
    transducer_loss(plain, targets, frames, lengths, 0).mean().backward()
    strided = logits.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0).requires_grad_()
    assert not strided.is_contiguous()
    transducer_loss(strided, targets.int(), frames.int(), lengths.to(torch.int16), 0).mean().backward()
    assert torch.equal(plain.grad, strided.grad)


def test_symbols_may_be_impossible_but_the_text_may_not():
    logits, targets, frames, lengths = _batch([3], [1], 4)
    targets[0, 0] = 1
    logits[..., 2] = -math.inf
    scores = logits.clone().requires_grad_()
    transducer_loss(scores, targets, frames, lengths, 0).backward()
    assert scores.grad.isfinite().all()
    assert not scores.grad[..., 2].any()
    logits[..., 1] = -math.inf
    with pytest.raises(ModelError, match="1 of 1 utterances of the batch, first 0: no alignment of its text"):
        transducer_loss(logits, targets, frames, lengths, 0)


def test_scores_that_are_not_finite_are_named():
    message = "1 of 2 utterances of the batch, first 1: the joiner's scores are not finite"
    for bad, gradient in itertools.product([math.nan, math.inf], [True, False]):
        logits, targets, frames, lengths = _batch([3, 4], [1, 2], 4)
        logits[1, 3, 1, 2] = bad
        with pytest.raises(ModelError, match=message):
            transducer_loss(logits.requires_grad_(gradient), targets, frames, lengths, 0)


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="the stand-ins are compiled by 'cc'")
def test_torchaudios_compiled_kernel_gives_the_same_loss_and_gradient():
    root = Path(__file__).parents[3]
    script = Path(__file__).with_name("compiled_kernel.py")
    environment = {**os.environ, "PYTHONPATH": str(root)}
    ran = subprocess.run([sys.executable, script], cwd=root, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
