"""Products with fixed float32 matrices on a processor, by oneDNN.

PyTorch multiplies float32 matrices with MKL. On AMD's processors MKL reaches less than half the rate of oneDNN, which
PyTorch uses for bfloat16. Both multiply in float32, and only the order of the sums differs. The matrix is laid out for
the processor's cache once and used many times, so it must not change.

Log-probabilities of targets need no full table of scores. The scores of a few positions over a block of the vocabulary
fit into the processor's cache. Each block adds to the normaliser of every position and is then dropped. The result
equals ``chunked_log_probabilities``, up to rounding.

The words of a vocabulary are in order of frequency. In a large one (``LARGE_VOCABULARY``) the first ``EXACT_WORDS``
have nearly all of the probability and are multiplied in float32. The many rare words after them are multiplied in
bfloat16 at twice the rate, where the processor supports it. Their rounding errors affect a small share of the
normaliser: about 1e-5 nats in the mean of a text. A target's own score and share of the normaliser are always in
float32, so probable rare words are exact too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tasks.torch_setup import has_bfloat16


def has_products(matrix: Tensor) -> bool:
    """Whether ``product`` supports this matrix."""
    return matrix.device.type == "cpu" and matrix.dtype == torch.float32 and torch.backends.mkldnn.is_available()


def laid_out(matrix: Tensor, rows: int) -> Tensor:
    """Lay out a matrix (V, D) for ``product``, optimised for this number of rows at a time."""
    return torch.ops.mkldnn._reorder_linear_weight(matrix.detach(), rows)


def product(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """``rows @ matrix.T + bias`` (..., V) for rows (..., D) and a matrix from ``laid_out``; no gradients."""
    return torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], None)


@contextmanager
def laid_out_layers(model: nn.Module, rows: int) -> Iterator[None]:
    """Use ``product`` in the linear layers of ``model`` inside the block; their weights must not change there."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear) and has_products(layer.weight)]
    try:
        for layer in layers:
            matrix, bias = laid_out(layer.weight, rows), layer.bias
            # Set on the instance, where it overrides the method of the class.
            layer.forward = lambda hidden, matrix=matrix, bias=bias: product(hidden, matrix, bias)  # type: ignore
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


BLOCK_WORDS = 4096
BLOCK_POSITIONS = 512
"""Words and positions of a block, whose scores are 8 MB."""
LARGE_VOCABULARY, EXACT_WORDS = 5 * BLOCK_WORDS, 2 * BLOCK_WORDS
"""Vocabulary size above which rare words use bfloat16, and number of float32 words; the default profile is below."""


@torch.no_grad()
def blockwise_log_probabilities(hidden: Tensor, projection: Tensor, targets: Tensor) -> Tensor:
    """Log softmax(hidden @ projection.T)[target] (N,) in nats, for float32 tensors on a processor.

    ``hidden`` (N, D), ``projection`` (V, D), ``targets`` (N,) of token ids.
    """
    large = len(projection) > LARGE_VOCABULARY and has_bfloat16()
    exact_words = EXACT_WORDS if large else len(projection)
    log_sums = torch.full((len(hidden),), -torch.inf)
    _add_blocks(log_sums, hidden, projection[:exact_words])
    own = (hidden * projection[targets]).sum(1)  # (N,)
    if exact_words < len(projection):
        rounded = hidden.bfloat16()
        _add_blocks(log_sums, rounded, projection[exact_words:].bfloat16())
        rough = (rounded.float() * projection[targets].bfloat16().float()).sum(1)  # (N,)
        change = torch.exp(own - log_sums) - torch.exp(rough.bfloat16().float() - log_sums)
        log_sums = torch.where(targets >= exact_words, log_sums + torch.log1p(change), log_sums)
    return own - log_sums


def _add_blocks(log_sums: Tensor, hidden: Tensor, projection: Tensor) -> None:
    """Add words (V, D) to the normalisers (N,) of positions (N, D), in place and in float32."""
    for words in projection.split(BLOCK_WORDS):
        matrix = laid_out(words, BLOCK_POSITIONS)
        for positions, total in zip(hidden.split(BLOCK_POSITIONS), log_sums.split(BLOCK_POSITIONS), strict=True):
            scores = product(positions, matrix)  # (n, v)
            # log_softmax reads the scores once; it subtracts log sum exp(score) from each of them.
            of_block = scores[:, 0].float() - torch.log_softmax(scores, dim=1, dtype=torch.float32)[:, 0]  # (n,)
            total.copy_(torch.logaddexp(total, of_block))
