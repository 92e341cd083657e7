from collections import Counter

import pytest

from tasks.corpora.words import word_spans
from tasks.review.plan import STRATA, make_plan, stratum_of

NOTHING = frozenset()
LINES = ["well Anna left"] * 40 + ["well then Zürich"] * 40 + ["so it goes"] * 120
READER = [{(5, 9): "PERSON"}] * 40 + [{}] * 160
FIRST = ((120, 2), (9, 0), (67, 1), (136, 2), (37, 0), (131, 2))
MASKS = {"ours": [NOTHING] * 200, "theirs": [NOTHING] * 200}


@pytest.mark.parametrize(
    ("line", "masked", "found", "others", "name"),
    [
        ("then Anna left", [], {"Anna": "PERSON"}, [["Anna"], ["Anna"], []], "direct finding unmasked that most mask"),
        ("then Anna left", [], {"Anna": "PERSON"}, [["Anna"], []], "direct finding unmasked"),
        ("then Anna left", ["Anna"], {"Anna": "PERSON"}, [["Anna"]], "direct finding masked"),
        ("it was in may", [], {"may": "DATE"}, [["may"]], "other finding unmasked"),
        ("it was Anna", [], {}, [["Anna"]], "name-like word unmasked"),
        ("room b12 it is", [], {}, [], "name-like word unmasked"),
        ("It is. Then I left.", [], {}, [], "no finding"),
        ("a b c d e f g h i j", [], dict.fromkeys("abcdefghij", "DATE"), [], "many findings unmasked"),
    ],
)
def test_the_stratum_of_a_line(line, masked, found, others, name):
    spans = {line[start:end]: (start, end) for start, end in word_spans(line)}
    own, *theirs = (frozenset(spans[word] for word in words) for words in (masked, *others))
    assert stratum_of(line, own, {spans[word]: label for word, label in found.items()}, theirs) == name


def test_every_line_comes_once_and_the_seed_decides():
    plan = make_plan(LINES, MASKS, READER, "ours", 1)
    assert sorted(line for line, _ in plan.queue) == list(range(200))
    assert [stratum.lines for stratum in plan.strata] == [40, 40, 120]
    assert plan == make_plan(iter(LINES), MASKS, iter(READER), "ours", 1)
    assert plan.queue != make_plan(LINES, MASKS, READER, "ours", 2).queue
    # The same on every machine.
    assert plan.queue[:6] == FIRST


def test_any_beginning_of_the_queue_has_its_share_of_each_stratum():
    plan = make_plan(LINES, MASKS, READER, "ours", 1)
    assert {stratum for _, stratum in plan.queue[:3]} == {0, 1, 2}
    shares = [STRATA[stratum.name] * stratum.lines for stratum in plan.strata]
    for n in range(3, 101):
        read = Counter(stratum for _, stratum in plan.queue[:n])
        for stratum, share in enumerate(shares):
            assert abs(read[stratum] - n * share / sum(shares)) <= 2


def test_a_line_is_drawn_by_chance_within_its_stratum():
    """In 400 plans each of 12 lines is the first one 33 times on average."""
    lines, nothing = ["so it goes"] * 12, {"ours": [NOTHING] * 12}
    firsts = Counter(make_plan(lines, nothing, [{}] * 12, "ours", seed).queue[0][0] for seed in range(400))
    assert len(firsts) == 12
    assert 10 < min(firsts.values()) < max(firsts.values()) < 60
