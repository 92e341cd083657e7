"""Log-probabilities by blocks of the vocabulary, and layers whose matrices are laid out for the processor."""

import pytest
import torch
from torch import nn

from tasks.language_model.transformer import blockwise_log_probabilities as module
from tasks.language_model.transformer.blockwise_log_probabilities import blockwise_log_probabilities
from tasks.language_model.transformer.processor_products import has_products, laid_out, laid_out_layers, product

pytestmark = pytest.mark.skipif(not has_products(torch.zeros(1, 1)), reason="this PyTorch has no oneDNN")


def test_blocks_add_up_to_log_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_WORDS", 5)
    monkeypatch.setattr(module, "BLOCK_POSITIONS", 4)
    generator = torch.Generator().manual_seed(7)
    hidden, projection = torch.randn(11, 6, generator=generator), torch.randn(23, 6, generator=generator)
    targets = torch.randint(0, 23, (11,), generator=generator)
    expected = torch.log_softmax(hidden.double() @ projection.double().t(), dim=1)[torch.arange(11), targets]
    found = blockwise_log_probabilities(hidden, projection, targets)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)


def test_equal_scores_are_a_uniform_distribution() -> None:
    words = 2 * module.BLOCK_WORDS
    found = blockwise_log_probabilities(torch.ones(3, 2), torch.zeros(words, 2), torch.tensor([0, 1, words - 1]))
    torch.testing.assert_close(found, torch.full((3,), -torch.tensor(float(words)).log()))


def test_large_scores_neither_overflow_nor_vanish() -> None:
    hidden = torch.tensor([[1000.0, 0.0], [-1000.0, 0.0]])
    projection = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    scores = blockwise_log_probabilities(hidden, projection, torch.tensor([0, 0]))
    torch.testing.assert_close(scores, torch.tensor([0.0, -2000.0]))


def test_without_targets_there_is_nothing() -> None:
    found = blockwise_log_probabilities(torch.empty(0, 4), torch.ones(9, 4), torch.empty(0, dtype=torch.int64))
    assert found.shape == (0,)


def test_a_product_is_the_ordinary_one() -> None:
    rows, matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, -1.0]])
    found = product(rows, laid_out(matrix, 2), torch.tensor([0.0, 10.0, 0.0]))
    assert found.tolist() == [[1.0, 13.0, -2.0], [3.0, 17.0, -4.0]]


def test_layers_are_laid_out_only_inside_the_block() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4, bias=False))
    hidden = torch.randn(5, 3, 8)
    expected = model(hidden)
    with torch.no_grad(), laid_out_layers(model, 15):
        assert not model(hidden).requires_grad
        torch.testing.assert_close(model(hidden), expected)
        assert "forward" in vars(model[0])
    assert "forward" not in vars(model[0])
    assert model(hidden).requires_grad
