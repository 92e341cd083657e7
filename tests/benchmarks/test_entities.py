"""Entities as shared tasks count them, on lines made by hand."""

import pytest

from benchmarks.entities import scores


def test_an_entity_counts_with_equal_borders_and_class():
    wanted = [{(0, 9, "PERSON"), (11, 15, "LOCATION")}, {(0, 4, "PERSON")}]
    found = [{(0, 9, "PERSON"), (11, 15, "PERSON"), (16, 19, "PERSON")}, {(0, 3, "PERSON")}]
    figures = scores(wanted, found)
    # One of three entities and one of four findings have equal borders and class; two each have equal borders.
    assert (figures["typed_recall"], figures["typed_precision"]) == pytest.approx((1 / 3, 1 / 4))
    assert figures["typed_f1"] == pytest.approx(2 * 1 / (3 + 4))
    assert figures["untyped_f1"] == pytest.approx(2 * 2 / (3 + 4))
