import pytest
from reviewed_corpus import LINES, begin, mark

from tasks.review.agreement import agreements, cohens_kappa


@pytest.mark.parametrize(
    ("pairs", "kappa"),
    [
        # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed .7, by chance .5 * .6 + .5 * .4 = .5.
        ([("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15, pytest.approx(0.4)),
        ([("y", "n"), ("n", "y")], -1),
        ([("n", "n")] * 3, None),
    ],
)
def test_kappa_by_hand(pairs, kappa):
    assert cohens_kappa(pairs) == kappa


def test_two_reviewers_are_compared_word_by_word(corpus):
    begin().save(3, [mark(3, "Zoë")], 1.0)
    begin().save(0, [mark(0, "Anna"), mark(0, "Rome", "LOCATION", False)], 1.0)
    second = begin("bob", second=True)
    second.save(3, [mark(3, "Zoë")], 1.0)
    second.save(0, [mark(0, "Anna", direct=False), mark(0, "Smith"), mark(0, "Rome", "ORGANISATION", False)], 1.0)
    (found,) = agreements(second.review, LINES)
    # Line 4 has the words Zoë said hi to Tom aunt, line 1 five. Both mark Zoë, Anna and Rome, bob marks Smith too.
    assert (found.reviewers, found.lines, found.words) == (("ann", "bob"), 2, 11)
    chance = (3 * 4 + 8 * 7) / 121
    assert found.kappa_marked == pytest.approx((10 / 11 - chance) / (1 - chance))
    # Equal classes: 7 words that neither marks; Zoë and Anna as persons. ann has 2 persons and a place, bob 3 persons.
    chance = (8 * 7 + 2 * 3) / 121
    assert found.kappa_class == pytest.approx((9 / 11 - chance) / (1 - chance))
    differing = [(each.line, LINES[each.line][each.start : each.end]) for each in found.differences]
    assert differing == [(0, "Anna"), (0, "Smith"), (0, "Rome")]
