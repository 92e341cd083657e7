"""Texts of published anonymisations, from their spans."""

from benchmarks.persons import replaced


def test_spans_are_replaced_in_any_order_and_of_two_that_overlap_the_first():
    spans = [[13, 17, "LOC"], [0, 3, "PERSON"], [15, 17, "X"]]
    assert replaced("Ada lives in Brno.", spans) == "PERSON lives in LOC."
