"""The frame of the benchmarks: who takes turns, what a ratio says, and outputs that differ."""

import pytest

from benchmarks.frame import check_same, speed


def test_the_ratio_is_the_median_of_rounds_that_each_side_begins_in_turn():
    began, seconds = [], {"ours": iter([1.0, 10.0, 1.0]), "peer": iter([2.0, 20.0, 3.0])}

    def clock(side):
        began.append(side)
        return next(seconds[side])

    found = speed("x", 6, "words/s", "ours", "peer", rounds=3, clock=clock)
    assert began == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert (found["ours"], found["peer"], found["ratio"], found["holds"]) == (6.0, 2.0, 2.0, True)


def test_outputs_that_differ_are_refused():
    check_same([1, 2, 3, 4], [1, 2, 3, 5], "words", share=0.75)
    with pytest.raises(AssertionError, match="words: 1 of 4 outputs differ"):
        check_same([1, 2, 3, 4], [1, 2, 3, 5], "words")
