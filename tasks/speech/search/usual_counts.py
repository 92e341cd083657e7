"""Numbers of rows that matrix products come in.

oneDNN compiles a product for each number of rows that it meets, which takes ten times as long as a small product. A
search asks for another number at every step, so rows are added up to one of few numbers.
"""

import numpy as np

_LEAST_STEP = 4
_STEPS_BETWEEN_POWERS = 8


def usual_count(rows: int) -> int:
    """The next larger number of few: multiples of 4, from 32 on eight between two powers of two."""
    step = max(_LEAST_STEP, (1 << max(rows - 1, 1).bit_length() - 1) // _STEPS_BETWEEN_POWERS)
    return -(-rows // step) * step


def padded(indices: np.ndarray) -> np.ndarray:
    """Indices (N,) with the first one repeated up to a usual number; none stay none."""
    more = usual_count(len(indices)) - len(indices)
    return np.concatenate([indices, np.repeat(indices[:1], more)]) if more else indices
