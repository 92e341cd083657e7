"""The share of fills that are the masked word, in groups and rounded."""

import random

import pytest

from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.masked_sentence import read_masked_line, with_spans
from tasks.filling.restoration import GenericWords, Restoration, Rounding, frequency_bucket


def span(original, marker, label="MASK", source="list"):
    return MaskedSpan(0, len(original), label, source, original, marker)


def sentence(line, *spans, number=1):
    return with_spans(read_masked_line(line, number, merge_markers=True), spans)


def exactly(value, most=1):
    """No rounding."""
    return value


def test_places_are_counted_by_source_class_and_frequency():
    generic = GenericWords({"dog": 0.2, "cat": 0.1, "york": 0.05}, {"the": 1, "dog": 2, "cat": 11, "york": 1000})
    restoration = Restoration(generic)
    spans = [span("New", 0), span("York", 1, "LOCATION", "tagger"), span("Tom", 2, "PERSON", "tagger"), span("Dog", 3)]
    line = sentence("[MASK] [MASK] saw [PERSON] and [MASK]", *spans)
    for _ in range(20):
        # The first place is restored by the tagger's word, not by the list's; the second is not; the third is.
        restoration.add([line], [["york", "Sam", "dog"]])
    restoration.add([sentence("[GROUP]", span("Cat", 0, "GROUP"))], [["mouse"]])
    measured = restoration.measured(exactly)
    overall = measured["overall"]
    assert (overall["places"], overall["restored"], overall["rate"]) == (61, 40, 0.656)
    assert overall["expected_by_frequency"] == pytest.approx((20 * 0.25 + 0.1) / 61, rel=0.005)
    groups = {
        dimension: [(name, row["places"], row["restored"]) for name, row in measured[dimension].items()]
        for dimension in ("by_source", "by_class", "by_frequency")
    }
    # The one word of GROUP, and the one of the second power of ten are left out.
    assert groups == {
        "by_source": [("list", 41, 20), ("tagger", 40, 20)],
        "by_class": [("LOCATION", 20, 20), ("MASK", 40, 20), ("PERSON", 20, 0)],
        "by_frequency": [("1-10", 20, 20), ("101-1000", 20, 20), ("unranked", 40, 0)],
    }
    assert measured["groups_left_out"] == 2
    assert not any(word in str(measured).lower() for word in ("york", "tom", "dog", "sam"))


def test_rounding_is_right_on_average_and_to_steps_of_several_places():
    for value, steps in ((3, {0, 5}), (24, {20, 25}), (8975, {8970, 8980}), (0, {0})):
        found = [round(Rounding(b"key", number)(value)) for number in range(4000)]
        assert set(found) == steps
        assert sum(found) / len(found) == pytest.approx(value, abs=0.3)
    assert Rounding(b"key", "counts")(24) == Rounding(b"key", "counts")(24)


def test_two_reports_that_differ_by_a_line_do_not_say_what_was_masked_there():
    """Who has the word counts and both reports, and knows nothing else, guesses the one word by their difference."""
    ranks = {f"word{rank}": rank for rank in range(1, 20_001)}
    total = sum(1 / rank for rank in ranks.values())
    generic = GenericWords({word: 1 / rank / total for word, rank in ranks.items()}, ranks)
    dice = random.Random(1)
    masked = dice.choices([*ranks, "unlisted"], [*(1 / rank for rank in ranks.values()), 0.5], k=360)
    added, rest = masked[:60], masked[60:]
    sentences = {original: sentence("[MASK]", span(original, 0)) for original in masked}

    def report(originals):
        restoration = Restoration(generic)
        for original in originals:
            restoration.add([sentences[original]], [["word7"]])
        measured = restoration.measured(Rounding(b"the clone's", restoration.counted()))
        expected = measured["overall"]["expected_by_frequency"] * measured["overall"]["places"]
        return expected, {name: row["places"] for name, row in measured["by_frequency"].items()}

    named = ranked = 0
    expected_before, places_before = report(rest)
    for original in added:
        expected, places = report([*rest, original])
        close = sorted(ranks, key=lambda word: abs(generic.probabilities[word] - (expected - expected_before)))[:100]
        named += original in close and ranks[original] > 100
        gained = {name: places.get(name, 0) - before for name, before in places_before.items()}
        ranked += max(gained, key=gained.get) == frequency_bucket(ranks.get(original))
    # By chance 100 words of 20,000 hold the right one in 0.3 of 60 cases, and one group of five or six is right in ten
    # to twenty; exact sums gave 28 and 60.
    assert named <= 3
    assert ranked <= 25
