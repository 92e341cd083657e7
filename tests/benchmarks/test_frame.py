"""The frame of the benchmarks: who takes turns, what a ratio says, and outputs that differ."""

import pytest

from benchmarks.frame import check_same, in_process, row, speed, take_turns


def test_each_side_begins_a_round_in_turn():
    began = []
    clock = lambda action: action()  # noqa: E731
    sides = [lambda name=name: began.append(name) or 1.0 for name in "ab"]
    assert take_turns(2, *sides, clock=clock) == [[1.0, 1.0], [1.0, 1.0]]
    assert began == ["a", "b", "b", "a"]


def test_above_one_palimpsest_is_faster():
    assert row("rate", 4, 2, "words/s", ">= 1.5")["ratio"] == 2
    assert row("time", 4, 2, "s", ">= 1.0") | {"ratio": 0.5, "holds": False} == row("time", 4, 2, "s", ">= 1.0")
    seconds = {"ours": iter([1.0, 10.0, 1.0]), "peer": iter([2.0, 20.0, 3.0])}
    found = speed("x", 6, "words/s", "ours", "peer", rounds=3, clock=lambda side: next(seconds[side]))
    assert (found["ours"], found["peer"], found["ratio"]) == (6.0, 2.0, 2.0)


def test_outputs_that_differ_are_refused():
    check_same([1, 2, 3, 4], [1, 2, 3, 5], "words", share=0.75)
    with pytest.raises(AssertionError, match="words: 1 of 4 outputs differ"):
        check_same([1, 2, 3, 4], [1, 2, 3, 5], "words")


def test_a_side_in_its_own_process_fails_with_its_message():
    with pytest.raises(RuntimeError, match="words: 1 of 1 outputs differ"):
        in_process("frame", "check_same", [1], [2], "words")
