from math import comb

import numpy as np
import pytest
from scipy.stats import gamma

from tasks.review.estimate import Counts, Sample, estimate, lines_needed, most_unseen
from tasks.review.plan import Plan, Stratum
from tasks.review.record import Mark

TAIL = 0.025


def plan(*sizes, queue=None):
    """Strata of these sizes, one after the other in the text, whose lines take turns."""
    first = np.cumsum([0, *sizes])
    turns = sorted(
        (place / size, int(first[stratum] + place), stratum)
        for stratum, size in enumerate(sizes)
        for place in range(size)
    )
    named = tuple(Stratum(f"stratum {size}", size) for size in sizes)
    return Plan("0" * 64, 1, named, tuple((line, stratum) for _, line, stratum in turns)[:queue])


def person(start, end, direct=True):
    return Mark(start, end, "PERSON", direct)


def read(plan, n, marks=(), masked=()):
    """The first n lines, with these marks and masked words."""
    lines = [line for line, _ in plan.queue[:n]]
    marks, masked = dict(marks), dict(masked)
    return {line: marks.get(line, ()) for line in lines}, {line: masked.get(line, frozenset()) for line in lines}


def test_a_text_that_is_read_whole_has_no_interval():
    """Of 8 identifiers in 10 lines 6 are unmasked."""
    whole = plan(4, 6)
    found = {line: (person(0, 3), person(5, 8)) for line in range(4)}
    of = estimate(whole, *read(whole, 10, found, {0: frozenset([(0, 3), (5, 8)])})).direct
    assert (of.found, of.unmasked_found) == (8, 6)
    assert (of.per_thousand.low, of.per_thousand.value, of.per_thousand.high) == pytest.approx((600, 600, 600))
    assert (of.recall.low, of.recall.value, of.recall.high) == pytest.approx((0.25, 0.25, 0.25))


def test_each_identifier_stands_for_the_lines_of_its_stratum():
    """1 of 2 lines read of 10 stands for 5, 1 of 4 of 100 for 25: 30 unmasked in 110 lines, and 25 that are masked."""
    strata = Plan(
        "0" * 64, 1, (Stratum("a", 10), Stratum("b", 100)), ((0, 0), (10, 1), (11, 1), (1, 0), (12, 1), (13, 1))
    )
    marks = {0: (person(0, 3),), 11: (person(0, 3),), 12: (person(0, 3),)}
    of = estimate(strata, *read(strata, 6, marks, {12: frozenset([(0, 3)])})).direct
    assert of.per_thousand.value == pytest.approx(1000 * 30 / 110)
    assert of.recall.value == pytest.approx(25 / 55)
    assert of.per_thousand.low >= 1000 * 2 / 110


def test_with_none_found_the_upper_end_is_the_exact_bound():
    """The number of lines of which 100 drawn miss all with a probability of 2.5 %, some 1-0.025^(1/100) of 1,000."""
    text = plan(1000)
    bound = estimate(text, *read(text, 100)).direct.per_thousand
    chance = [comb(1000 - lines, 100) / comb(1000, 100) for lines in range(60)]
    exact = max(lines for lines in range(60) if chance[lines] >= TAIL)
    assert (bound.value, bound.low) == (0, 0)
    assert exact <= bound.high < exact + 1
    assert bound.high == pytest.approx(1000 * (1 - TAIL ** (1 / 100)), rel=0.06)
    assert estimate(text, *read(text, 100)).direct.recall is None


def test_the_interval_is_that_of_fay_and_feuer_for_the_lines_that_were_not_read():
    """30 of 40 lines are read, and 6 of them hold one: 8 in all, 6 of them for certain."""
    text = plan(40)
    bound = estimate(text, *read(text, 30, {line: (person(0, 3),) for line in range(6)})).direct.per_thousand
    variance = (40 / 30) ** 2 * (1 - 30 / 40) * (6 - 6**2 / 32)
    unseen = most_unseen(np.array([40]), np.array([30]), TAIL) / -np.log(TAIL)

    def quantile(mean, variance, probability):
        return gamma.ppf(probability, mean**2 / variance, scale=variance / mean)

    low, high = max(6, quantile(8, variance, TAIL)), 6 + quantile(2 + unseen, variance + unseen**2, 1 - TAIL)
    assert (bound.low, bound.value, bound.high) == pytest.approx((1000 * low / 40, 200, 1000 * high / 40))


def test_with_none_found_in_several_strata_the_worst_text_counts():
    sizes, drawn = np.array([12, 30, 5]), np.array([3, 6, 5])
    worst = max(
        a + b
        for a in range(10)
        for b in range(25)
        if comb(12 - a, 3) / comb(12, 3) * comb(30 - b, 6) / comb(30, 6) >= TAIL
    )
    assert int(most_unseen(sizes, drawn, TAIL)) == worst
    assert most_unseen(sizes, sizes, TAIL) == 0
    assert most_unseen(sizes, np.array([0, 30, 5]), TAIL) == 12


def test_words_that_touch_are_one_identifier():
    text = plan(3)
    marks = {
        0: (person(0, 4), person(5, 10, direct=False)),
        1: (person(0, 4), Mark(5, 9, "LOCATION", False)),
        2: (person(0, 4), person(6, 9)),
    }
    of = estimate(text, *read(text, 3, marks, {0: frozenset([(0, 4)]), 2: frozenset([(0, 4)])}))
    assert [(each.found, each.unmasked_found) for each in (of.direct, of.quasi)] == [(4, 3), (1, 1)]
    assert {label: each.found for label, each in of.classes.items()} == {"PERSON": 4, "LOCATION": 1}


def test_the_lines_that_are_needed_are_enough_and_no_more():
    text = plan(300, 700)
    marks, masked = read(text, 100, {0: (person(0, 3),)})
    for known in ({}, {"marks": marks, "masked": masked}):
        more = lines_needed(text, 100, 30.0, **known)
        highs = [
            estimate(text, *read(text, 100 + lines, known.get("marks", ()))).direct.per_thousand.high
            for lines in (more - 1, more)
        ]
        assert highs[1] <= 30 < highs[0]
    assert lines_needed(text, 100, 30.0, marks=marks, masked=masked) > lines_needed(text, 100, 30.0)
    assert lines_needed(text, 200, 50.0) == 0
    assert lines_needed(plan(3000, queue=100), 0, 20.0) is None


def test_intervals_hold_as_often_as_they_say_where_a_naive_one_does_not():
    """20 of 2,000 lines hold one unmasked identifier, half of them in a stratum that is read more."""
    generator = np.random.default_rng(1)
    sizes, drawn, holding = np.array([400, 1600]), np.array([60, 60]), np.array([10, 10])
    sums = generator.hypergeometric(holding, sizes - holding, drawn, size=(4000, 2)).astype(float)
    counts = Counts(np.stack([sums, 0 * sums]), np.stack([sums, 0 * sums]), sums.sum(-1))
    value, low, high = counts.totals(Sample(sizes, drawn))[0]
    assert value.mean() == pytest.approx(20, abs=1)
    assert ((low <= 20) & (high >= 20)).mean() >= 0.94
    assert (high < 20).mean() <= 0.03
    share = sums / drawn
    error = 1.96 * np.sqrt((sizes**2 * share * (1 - share) / drawn).sum(-1))
    assert (abs(value - 20) <= error).mean() < 0.9
