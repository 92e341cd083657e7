"""Log-probabilities by blocks of the vocabulary, and layers whose matrices are laid out for the processor."""

import pytest
import torch

from tasks.language_model.transformer import processor_products as module
from tasks.language_model.transformer.processor_products import (
    blockwise_log_probabilities,
    has_products,
)

pytestmark = pytest.mark.skipif(not has_products(torch.zeros(1, 1)), reason="this PyTorch has no oneDNN")


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
