from collections import Counter

import numpy as np
import pytest

from tasks.audit.canaries import make_canaries
from tasks.audit.twin import TwinText
from tasks.corpora.sources.published_frequencies import published_counts


@pytest.fixture(scope="module")
def ranks():
    """Of English words, as the word counts of an experiment have them."""
    found = {}
    for word, _ in published_counts():
        found.setdefault(word.casefold(), len(found) + 1)
    # The published list has no numbers, the generic text of an experiment has.
    return found | {str(number): 5000 + number for number in range(10, 99)}


def drawn(ranks, seed=1, canaries=6):
    return make_canaries(ranks, canaries, repetitions=[4, 16], references=300, coins=100, seed=seed)


def test_what_is_planted_stands_so_often_and_references_never(ranks):
    found = drawn(ranks)
    counts = Counter((canary.family, canary.repetitions) for canary in found.planted if not canary.is_coin)
    once_too = {(family, times): 6 for family in ("masked", "figures") for times in (1, 4, 16)}
    assert counts == {("kept", 4): 6, ("kept", 16): 6} | once_too
    coins = [canary.repetitions for canary in found.planted if canary.is_coin]
    assert (len(coins), set(coins)) == (100, {0, 1})
    assert 30 < sum(coins) < 70
    planted = {canary.text for canary in found.planted}
    assert len(planted) == len(found.planted)
    for sentences in found.references.values():
        assert len(set(sentences)) == 300
        assert planted.isdisjoint(sentences)
    # Three words each of one pool.
    assert all(2 ** (found.bits["figures", form] / 3) == pytest.approx(89) for form in (0, 1))
    assert all(canary.text[:place].endswith(" ") for canary in found.planted for place in canary.drawn)


def test_the_twin_has_the_text_without_some_lines_and_what_was_planted(ranks):
    repeated = [canary.text for canary in drawn(ranks).planted for _ in range(canary.repetitions)]
    text = [f"line {number} filled {copy}" for copy in range(2) for number in range(400)]
    documents = [str(number // 10) for number in range(400)]
    is_member = np.random.default_rng(1).random(400) >= 0.25
    twin = TwinText(text, documents, is_member, [(line.upper(), f"canary {line}") for line in repeated], seed=1)
    assert set(twin.shadows(4, 0.25).sum(axis=0)) == {2}  # every line is in half of the shadow models' texts
    lines, names = zip(*twin.of(twin.is_member), strict=True)
    own = [line for line in lines if line.startswith("line ")]
    # Every copy of a line is out, or none; the order stays.
    assert own == [line for number, line in enumerate(text) if is_member[number % 400]]
    planted = Counter(line for line in lines if not line.startswith("line "))
    assert planted == Counter(map(str.upper, repeated))
    # A document for each canary, whose sixteen repetitions are one.
    assert len(set(names)) == 40 + len(planted)
    # They stand all over the text.
    places = [number for number, line in enumerate(lines) if not line.startswith("line ")]
    assert places[0] < 30
    assert places[-1] > len(lines) - 30
