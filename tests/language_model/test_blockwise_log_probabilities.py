"""Log-probabilities by blocks of the vocabulary, and layers whose matrices are laid out for the processor."""

import pytest
import torch
from torch import nn

from tasks.language_model.transformer import processor_products as module
from tasks.language_model.transformer.processor_products import (
    blockwise_log_probabilities,
    has_products,
    laid_out_layers,
)

pytestmark = pytest.mark.skipif(not has_products(torch.zeros(1, 1)), reason="this PyTorch has no oneDNN")


needs_bfloat16 = pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this processor has no products in bfloat16"
)


def test_blocks_add_up_to_log_softmax(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_WORDS", 5)
    monkeypatch.setattr(module, "BLOCK_POSITIONS", 4)
    generator = torch.Generator().manual_seed(7)
    hidden, projection = torch.randn(11, 6, generator=generator), torch.randn(23, 6, generator=generator)
    targets = torch.randint(0, 23, (11,), generator=generator)
    expected = torch.log_softmax(hidden.double() @ projection.double().t(), dim=1)[torch.arange(11), targets]
    found = blockwise_log_probabilities(hidden, projection, targets)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)
    # Large scores neither overflow nor vanish.
    hidden = torch.tensor([[1000.0, 0.0], [-1000.0, 0.0]])
    projection = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    scores = blockwise_log_probabilities(hidden, projection, torch.tensor([0, 0]))
    torch.testing.assert_close(scores, torch.tensor([0.0, -2000.0]))


@needs_bfloat16
def test_rare_words_of_a_large_vocabulary_may_be_rounded_but_not_a_target(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_WORDS", 8)
    generator = torch.Generator().manual_seed(3)
    hidden, projection = torch.randn(50, 32, generator=generator), torch.randn(40, 32, generator=generator)
    # Rare words are improbable, but for one that the first position alone is sure of.
    projection[8:] *= 0.2
    hidden[1:, -1] = 0.0
    hidden[0, -1] = 3.7
    projection[30] = torch.tensor([*[0.0] * 31, 7.3])
    targets = torch.arange(50) % 40
    targets[0] = 30
    expected = torch.log_softmax(hidden.double() @ projection.double().t(), dim=1)[torch.arange(50), targets]
    whole = blockwise_log_probabilities(hidden, projection, targets, exact_words=40)
    torch.testing.assert_close(whole.double(), expected, rtol=1e-5, atol=1e-5)
    rounded = blockwise_log_probabilities(hidden, projection, targets, exact_words=8)
    assert (rounded != whole).any()
    assert (rounded - expected).abs().max() < 5e-3
    assert float(rounded[0] - expected[0]) == pytest.approx(0.0, abs=1e-5)


@needs_bfloat16
def test_the_default_vocabulary_is_exact_and_the_papers_is_not(monkeypatch):
    generator = torch.Generator().manual_seed(5)
    hidden = torch.randn(4, 16, generator=generator)
    monkeypatch.setattr(module, "has_bfloat16", lambda: True)
    for words, exact in ((20_000, True), (85_000, False)):
        projection = torch.randn(words, 16, generator=generator)
        targets = torch.tensor([0, 1, words - 2, words - 1])
        found = blockwise_log_probabilities(hidden, projection, targets)
        whole = blockwise_log_probabilities(hidden, projection, targets, exact_words=words)
        assert bool((found == whole).all()) is exact
    monkeypatch.setattr(module, "has_bfloat16", lambda: False)
    torch.testing.assert_close(blockwise_log_probabilities(hidden, projection, targets), whole, rtol=0, atol=0)


def test_layers_are_laid_out_only_inside_the_block():
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
