"""The loss from encoder and predictor against the joiner's modules with ``transducer_loss`` behind them."""

import math

import pytest
import torch

from tasks.errors import ModelError
from tasks.speech.transducer_loss import joiner_loss as joiner_loss_module
from tasks.speech.transducer_loss.joiner_loss import transducer_loss_from_joiner
from tasks.speech.transducer_loss.loss import transducer_loss
from tasks.torch_setup import stand_in_for_torchaudio_extension

FRAMES, LENGTHS, WIDTH, SYMBOLS, BLANK = (6, 4, 1), (3, 5, 0), 8, 7, 2


def _tensors(dtype=torch.float64, padding=0.0):
    torch.manual_seed(3)
    encodings = torch.randn(3, 6, WIDTH, dtype=dtype)
    predictions = torch.randn(3, 6, WIDTH, dtype=dtype)
    for index, (time, length) in enumerate(zip(FRAMES, LENGTHS, strict=True)):
        encodings[index, time:] = padding
        predictions[index, length + 1 :] = padding
    weight, bias = torch.randn(SYMBOLS, WIDTH, dtype=dtype), torch.randn(SYMBOLS, dtype=dtype)
    targets = torch.tensor([[1, 0, 6, 99, 99], [3, 3, 4, 5, 1], [99, 99, 99, 99, 99]])
    inputs = [each.requires_grad_() for each in (encodings, predictions, weight, bias)]
    return inputs, (targets, torch.tensor(FRAMES), torch.tensor(LENGTHS), BLANK)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("nodes", [1, 5, 1000])
def test_loss_and_gradients_equal_those_of_the_joiner(activation, reduction, nodes, monkeypatch):
    monkeypatch.setattr(joiner_loss_module, "_FEWEST_NODES", nodes)
    monkeypatch.setitem(joiner_loss_module._PIECE, "cpu", 1)
    stand_in_for_torchaudio_extension()
    from torchaudio.models.rnnt import _Joiner

    (encodings, predictions, weight, bias), rest = _tensors()
    joiner = _Joiner(WIDTH, SYMBOLS, activation).double()
    joiner.load_state_dict({"linear.weight": weight, "linear.bias": bias})
    logits, *_ = joiner(encodings, rest[1], predictions, rest[2])
    expected = transducer_loss(logits, *rest, reduction=reduction)
    expected.backward()
    wanted = [encodings.grad, predictions.grad, joiner.linear.weight.grad, joiner.linear.bias.grad]

    inputs, _ = _tensors(padding=math.nan)
    found = transducer_loss_from_joiner(*inputs, *rest, activation=activation, reduction=reduction)
    (3 * found).backward()
    assert found.item() == pytest.approx(expected.item(), abs=1e-10)
    for given, gradient in zip(inputs, wanted, strict=True):
        torch.testing.assert_close(given.grad, 3 * gradient, atol=1e-10, rtol=0)


def test_without_gradients_the_loss_is_the_same():
    inputs, rest = _tensors()
    with_gradients = transducer_loss_from_joiner(*inputs, *rest)
    with torch.no_grad():
        without = transducer_loss_from_joiner(*inputs, *rest)
    assert with_gradients.requires_grad
    assert not without.requires_grad
    assert without.item() == with_gradients.item()


def test_gradcheck():
    inputs, rest = _tensors()
    assert torch.autograd.gradcheck(
        lambda *given: transducer_loss_from_joiner(*given, *rest, activation="tanh"), tuple(inputs)
    )


def test_bfloat16_products_keep_the_gradient_within_rounding():
    """bfloat16 has 8 bits of precision: 0.4 % a number, and gradients stay in the type of their tensors."""
    exact, rest = _tensors(torch.float32)
    transducer_loss_from_joiner(*exact, *rest, activation="tanh").backward()
    rounded, _ = _tensors(torch.float32)
    transducer_loss_from_joiner(*rounded, *rest, activation="tanh", arithmetic=torch.bfloat16).backward()
    for one, other in zip(exact, rounded, strict=True):
        assert other.grad.dtype == torch.float32
        assert not torch.equal(one.grad, other.grad)
        assert (one.grad - other.grad).norm() < 0.02 * one.grad.norm()


def test_graph_can_be_walked_twice():
    inputs, rest = _tensors()
    loss = transducer_loss_from_joiner(*inputs, *rest)
    loss.backward(retain_graph=True)
    once = [each.grad.clone() for each in inputs]
    loss.backward()
    for each, gradient in zip(inputs, once, strict=True):
        torch.testing.assert_close(each.grad, 2 * gradient)


def test_what_does_not_fit_is_named():
    (encodings, predictions, weight, bias), rest = _tensors()
    with pytest.raises(ModelError, match=r"needs encodings \(B, T, D\).* not \(3, 6, 8\), \(3, 6, 7\), \(7, 8\), "):
        transducer_loss_from_joiner(encodings, predictions[..., 1:], weight, bias, *rest)
    with pytest.raises(ModelError, match=r"label 0 of utterance 0 of the batch is 1; .* 1 is the blank"):
        transducer_loss_from_joiner(encodings, predictions, weight, bias, *rest[:3], 1)
    with pytest.raises(ModelError, match=r"3 of 3 utterances of the batch.*not finite"):
        transducer_loss_from_joiner(encodings, predictions, weight * math.inf, bias, *rest)
    with pytest.raises(ValueError, match="activation 'gelu' is unknown; there are relu and tanh"):
        transducer_loss_from_joiner(encodings, predictions, weight, bias, *rest, activation="gelu")
    with pytest.raises(ValueError, match="reduction 'none' is unknown; there are mean and sum"):
        transducer_loss_from_joiner(encodings, predictions, weight, bias, *rest, reduction="none")
