"""Few numbers of rows: never fewer than there are, and not many more."""

import numpy as np

from tasks.language_model.sequence_tree import padded, usual_count


def test_counts_are_few_and_near():
    counts = [usual_count(rows) for rows in range(1, 2049)]
    assert all(rows <= count <= max(4, rows + 3, rows * 1.125) for rows, count in enumerate(counts, start=1))
    assert len(set(counts)) == 8 + 6 * 8  # multiples of 4 up to 32, then eight for each doubling up to 2,048
    assert counts == sorted(counts)


def test_the_first_index_fills_up():
    assert padded(np.array([7, 3, 9, 1, 2])).tolist() == [7, 3, 9, 1, 2, 7, 7, 7]
    assert padded(np.array([7, 3, 9, 1])).tolist() == [7, 3, 9, 1]
    assert padded(np.zeros(0, dtype=np.int64)).tolist() == []
