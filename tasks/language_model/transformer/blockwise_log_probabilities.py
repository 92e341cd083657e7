"""Log-probabilities of targets on a processor, without the full table of scores.

The scores of a few positions over a block of the vocabulary fit into the processor's cache; each block adds to the
normaliser of every position and is forgotten. The result is that of ``chunked_log_probabilities``, to rounding.
"""

import torch
from torch import Tensor

from tasks.language_model.transformer.processor_products import laid_out, product

BLOCK_WORDS = 4096
BLOCK_POSITIONS = 512
"""Scores of a block: 8 MB."""


@torch.no_grad()
def blockwise_log_probabilities(hidden: Tensor, projection: Tensor, targets: Tensor) -> Tensor:
    """log softmax(hidden @ projection.T)[target] (N,) in nats, of float32 tensors on a processor.

    ``hidden`` (N, D), ``projection`` (V, D), ``targets`` (N,) of token ids.
    """
    log_sums = torch.full((len(hidden),), -torch.inf)
    for words in projection.split(BLOCK_WORDS):
        matrix = laid_out(words, BLOCK_POSITIONS)
        for positions, total in zip(hidden.split(BLOCK_POSITIONS), log_sums.split(BLOCK_POSITIONS), strict=True):
            scores = product(positions, matrix)  # (n, v)
            # log_softmax goes over the scores once; what it takes away from any one of them is log sum exp(score).
            of_block = scores[:, 0] - torch.log_softmax(scores, dim=1)[:, 0]  # (n,)
            total.copy_(torch.logaddexp(total, of_block))
    return (hidden * projection[targets]).sum(1) - log_sums
