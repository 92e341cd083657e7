"""Confidence intervals of the token rates by resampling documents (Efron's percentile bootstrap).

Words of one document stand and fall together (a name that is missed once is often missed again), so documents are
drawn, with replacement and as many as there are, and the rates of each draw are ratios of its sums.
"""

from collections.abc import Sequence
from typing import Any

from tasks.masking_evaluation.judged_line import Document, JudgedLine
from tasks.masking_evaluation.rates import BETA

_CELLS_AT_ONCE = 2_000_000


def token_intervals(lines: Sequence[JudgedLine], samples: int, confidence: float, seed: int) -> dict[str, Any]:
    """``recall_ci``, ``precision_ci`` and ``f2_ci`` as ``[low, high]``.

    A draw in which a rate is undefined says nothing about that rate. An interval is ``None`` with fewer than two
    documents, or where the rate is undefined in every draw.
    """
    import numpy as np

    by_document: dict[Document, list[int]] = {}
    for line in lines:
        sums = by_document.setdefault(line.document, [0, 0, 0])
        for span, finding in zip(line.gold, line.findings, strict=True):
            sums[0] += span is not None
            sums[1] += finding is not None
            sums[2] += span is not None and finding is not None
    names = ("recall_ci", "precision_ci", "f2_ci")
    documents = len(by_document)
    if documents < 2:
        return dict.fromkeys(names)
    columns = np.array(list(by_document.values()), dtype=np.float64)  # (documents, 3)
    generator = np.random.default_rng(seed)
    block = max(1, _CELLS_AT_ONCE // documents)
    sums_of_draws = []
    for begin in range(0, samples, block):
        size = min(block, samples - begin)
        drawn = generator.integers(0, documents, size=(size, documents))
        sums_of_draws.append(columns[drawn].sum(axis=1))  # (draws, 3)
    gold, masked, both = np.concatenate(sums_of_draws).T
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    intervals: dict[str, Any] = {}
    # In words, F2 is a ratio of sums too: recall and precision have the same numerator.
    for name, right, whole in (
        ("recall_ci", both, gold),
        ("precision_ci", both, masked),
        ("f2_ci", (1 + BETA**2) * both, np.where(gold > 0, BETA**2 * gold + masked, 0)),
    ):
        defined = whole > 0
        if not defined.any():
            intervals[name] = None
            continue
        low, high = np.quantile(right[defined] / whole[defined], tails)
        intervals[name] = [float(low), float(high)]
    return intervals
