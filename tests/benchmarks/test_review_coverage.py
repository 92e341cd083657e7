import json

import numpy as np
import pytest

from benchmarks.reference_reader import GoldLine
from benchmarks.review_coverage import BEGIN, END, PAGE, RESULTS, Draws, counted, table

ROWS = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_table_of_the_docs_is_that_of_the_results():
    assert PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0] == f"\n{table(ROWS)}"


def test_the_stored_intervals_hold_in_94_percent_of_all_reviews():
    rows = [row for row in ROWS if "lines" in row]
    coverages = [row[figure]["coverage"] for row in rows for figure in ("unmasked", "recall")]
    assert min(coverages) >= 0.94
    assert max(row["zero_miss_wrong"] for row in rows) <= 0.025
    assert min(row["stopped"]["coverage"] for row in ROWS if "stopped" in row) >= 0.94


def test_identifiers_are_counted_by_line_and_reviews_of_all_lines_are_exact():
    """Anna is masked, Rome and 555 are not; the text is read twice over in another order, with the same result."""
    lines = [GoldLine("Anna saw Rome", "1", [(0, 4, True), (9, 13, False)]), GoldLine("call 555", "1", [(5, 8, True)])]
    masks = {"ours": [frozenset([(0, 4)]), frozenset()]}
    text = counted(lines, masks, [{(0, 4): "PERSON"}, {}], "ours")
    assert text.counts.tolist() == [[[0, 1], [1, 1]], [[1, 0], [1, 0]]]
    draws = Draws(text, text.stratum, repetitions=2, most=2, seed=1)
    for sort, unmasked, recall in ((0, 500, 1 / 2), (1, 1000, 1 / 3)):
        found = draws.intervals(np.bincount(text.stratum), sort)
        assert np.array(found["unmasked"]) == pytest.approx(unmasked)
        assert np.array(found["recall"]) == pytest.approx(recall)
