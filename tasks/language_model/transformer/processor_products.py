"""Products with fixed float32 matrices on a processor, by oneDNN.

PyTorch multiplies float32 matrices with MKL, which on AMD's processors reaches less than half the rate of oneDNN, the
library that PyTorch itself takes for bfloat16. Both multiply in float32; only the order of the sums differs. The matrix
is laid out for the processor's cache once and used many times, so this is for weights that do not change.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def has_products(matrix: Tensor) -> bool:
    """Whether the products below take this matrix."""
    return matrix.device.type == "cpu" and matrix.dtype == torch.float32 and torch.backends.mkldnn.is_available()


def laid_out(matrix: Tensor, rows: int) -> Tensor:
    """A matrix (V, D) as ``product`` takes it, best for about so many rows at a time."""
    return torch.ops.mkldnn._reorder_linear_weight(matrix.detach(), rows)


def product(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """``rows @ matrix.T + bias`` (..., V) of rows (..., D) and a matrix that is ``laid_out``; no gradients."""
    return torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], None)


@contextmanager
def laid_out_layers(model: nn.Module, rows: int) -> Iterator[None]:
    """Have the linear layers of ``model`` multiply this way inside the block; their weights must not change there."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear) and has_products(layer.weight)]
    try:
        for layer in layers:
            matrix, bias = laid_out(layer.weight, rows), layer.bias
            # On the layer itself, where it hides the method of the class.
            layer.forward = lambda hidden, matrix=matrix, bias=bias: product(hidden, matrix, bias)  # type: ignore
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)
