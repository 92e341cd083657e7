import json
import random

import pytest

from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.masked_sentence import read_masked_line, with_spans
from tasks.filling.restoration import GenericWords, Restoration, Rounding, frequency_bucket, wilson_interval


def span(original, marker, label="MASK", source="list"):
    return MaskedSpan(0, len(original), label, source, original, marker)


def sentence(line, *spans, merge_markers=True):
    return with_spans(read_masked_line(line, 1, merge_markers=merge_markers), spans)


GENERIC = GenericWords({"dog": 0.2, "cat": 0.1, "york": 0.05}, {"the": 1, "dog": 2, "cat": 11, "york": 1000})


def exactly(value, most=1):
    """No rounding: what is counted, before it may be told."""
    return value


def test_places_are_counted_by_source_class_and_frequency():
    restoration = Restoration(GENERIC)
    line = sentence(
        "[MASK] [MASK] saw [PERSON] and [MASK]",
        span("New", 0, source="list"),
        span("York", 1, "LOCATION", "tagger"),
        span("Tom", 2, "PERSON", "tagger"),
        span("Dog", 3),
    )
    for _ in range(20):
        # The first place is restored by the tagger's word, not by the list's; the second is not; the third is.
        restoration.add([line], [["york", "Sam", "dog"]])
    restoration.add([sentence("[GROUP]", span("Cat", 0, "GROUP"))], [["mouse"]])
    measured = restoration.measured(exactly)
    overall = measured["overall"]
    assert (overall["places"], overall["restored"], overall["rate"]) == (61, 40, 0.656)
    assert overall["expected_by_frequency"] == pytest.approx((20 * 0.25 + 0.1) / 61, rel=0.005)

    def counted(dimension):
        return {name: (row["places"], row["restored"]) for name, row in measured[dimension].items()}

    assert counted("by_source") == {"list": (41, 20), "tagger": (40, 20)}
    assert counted("by_class") == {"LOCATION": (20, 20), "MASK": (40, 20), "PERSON": (20, 0)}
    assert counted("by_frequency") == {"1-10": (20, 20), "101-1000": (20, 20), "unranked": (40, 0)}
    assert list(measured["by_frequency"]) == ["1-10", "101-1000", "unranked"]
    # The one word of GROUP, and the one of the second power of ten.
    assert measured["groups_left_out"] == 2
    text = json.dumps(measured).lower()
    assert not any(word in text for word in ("york", "tom", "dog", "sam"))


def test_a_share_of_too_few_places_is_not_told_and_without_word_counts_nothing_is_expected():
    for places, known in [(0, False), (19, False), (20, True)]:
        restoration = Restoration(None)
        for _ in range(places):
            restoration.add([sentence("[MASK]", span("dog", 0))], [["dog"]])
        measured = restoration.measured(exactly)
        assert measured["overall"] == {
            "places": places, "restored": 20 if known else None, "rate": 1.0 if known else None,
            "rate_ci": [0.531, 1.0] if known else None, "expected_by_frequency": None,
        }  # fmt: skip
        assert list(measured["by_class"]) == (["MASK"] if known else [])
        assert measured["by_frequency"] is None


def test_rounding_is_right_on_average_and_to_steps_of_several_places():
    for value, steps in ((3, {0, 5}), (24, {20, 25}), (8975, {8970, 8980}), (0, {0})):
        found = [round(Rounding(b"key", number)(value)) for number in range(4000)]
        assert set(found) == steps
        assert sum(found) / len(found) == pytest.approx(value, abs=0.3)
    assert Rounding(b"key", "counts")(24) == Rounding(b"key", "counts")(24)


def test_two_reports_that_differ_by_a_line_do_not_say_what_was_masked_there():
    """Who has the word counts and both reports, and knows nothing else, guesses the one word by their difference."""
    words = [f"word{rank}" for rank in range(1, 20_001)]
    total = sum(1 / rank for rank in range(1, 20_001))
    generic = GenericWords({w: 1 / r / total for r, w in enumerate(words, 1)}, {w: r for r, w in enumerate(words, 1)})
    dice = random.Random(1)
    masked = dice.choices([*words, "unlisted"], [1 / rank for rank in range(1, 20_001)] + [0.5], k=360)
    added, rest = masked[:60], masked[60:]

    def report(originals):
        restoration = Restoration(generic)
        for original in originals:
            restoration.add([sentence("[MASK]", span(original, 0))], [["word7"]])
        return restoration.measured(Rounding(b"the clone's", restoration.counted()))

    def of_places(measured, name):
        share = measured["overall"][name]
        return share * measured["overall"]["places"]

    named = ranked = 0
    before = report(rest)
    for original in added:
        after = report([*rest, original])
        gained = of_places(after, "expected_by_frequency") - of_places(before, "expected_by_frequency")
        close = sorted(words, key=lambda word: abs(generic.probabilities[word] - gained))[:100]
        named += original in close and generic.ranks[original] > 100
        groups = {
            name: after["by_frequency"].get(name, {}).get("places", 0) - row["places"]
            for name, row in before["by_frequency"].items()
        }
        ranked += max(groups, key=groups.get) == frequency_bucket(generic.ranks.get(original))
    # By chance 100 words of 20,000 hold the right one in 0.3 of 60 cases, and one group of five or six is right in ten
    # to twenty; exact sums gave 28 and 60.
    assert named <= 3
    assert ranked <= 25


def test_wilson_interval():
    for successes, trials, expected in [
        (5, 10, (0.2366, 0.7634)),  # in tables of Wilson's interval
        (0, 10, (0.0, 0.2775)),  # z² / (n + z²)
        (1, 1, (0.2065, 1.0)),  # 1 / (1 + z²)
    ]:
        assert wilson_interval(successes, trials) == pytest.approx(expected, abs=5e-5)
    assert wilson_interval(0, 0) is None
