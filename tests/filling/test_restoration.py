import json

import pytest

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import CorpusError
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.restoration import GenericWords, Restoration, frequency_bucket, wilson_interval
from tasks.filling.slot_originals import originals_of_slots, with_spans


def span(original, marker, label="MASK", source="list"):
    return MaskedSpan(0, len(original), label, source, original, marker)


def sentence(line, *spans, merge_markers=True):
    return with_spans(read_masked_line(line, 1, merge_markers=merge_markers), spans)


GENERIC = GenericWords({"dog": 0.2, "cat": 0.1, "york": 0.05}, {"the": 1, "dog": 2, "cat": 11, "york": 1000})


def test_places_are_counted_by_source_class_and_frequency():
    restoration = Restoration(GENERIC)
    line = sentence(
        "[MASK] [MASK] saw [PERSON] and [MASK]",
        span("New", 0, source="list"),
        span("York", 1, "LOCATION", "tagger"),
        span("Tom", 2, "PERSON", "tagger"),
        span("Dog", 3),
    )
    # The first place is restored by the tagger's word, not by the list's; the second is not; the third is.
    restoration.add(line, ["york", "Sam", "dog"])
    measured = restoration.measured()
    overall = measured["overall"]
    assert (overall["places"], overall["restored"]) == (3, 2)
    assert overall["rate"] == restoration.rate == 2 / 3
    assert overall["expected_by_frequency"] == restoration.expected_by_frequency == pytest.approx(0.25 / 3)

    def counted(dimension):
        return {name: (row["places"], row["restored"]) for name, row in measured[dimension].items()}

    assert counted("by_source") == {"list": (2, 1), "tagger": (2, 1)}
    assert counted("by_class") == {"LOCATION": (1, 1), "MASK": (2, 1), "PERSON": (1, 0)}
    assert counted("by_frequency") == {"1-10": (1, 1), "101-1000": (1, 1), "unranked": (2, 0)}
    assert list(measured["by_frequency"]) == ["1-10", "101-1000", "unranked"]
    assert measured["by_source"]["list"]["expected_by_frequency"] == pytest.approx(0.1)
    assert measured["by_source"]["tagger"]["expected_by_frequency"] == pytest.approx(0.025)
    text = json.dumps(measured).lower()
    assert not any(word in text for word in ("york", "tom", "dog", "sam"))


def test_a_span_of_several_words_is_restored_by_one_of_them():
    restoration = Restoration(GENERIC)
    restoration.add(sentence("in [LOCATION]", span("New York", 0, "LOCATION")), ["new"])
    assert restoration.rate == 1.0
    assert restoration.expected_by_frequency == pytest.approx(0.05)


def test_parts_add_up_to_the_whole():
    whole, first, second, total = (Restoration(GENERIC) for _ in range(4))
    lines = [
        (sentence("[MASK]", span("dog", 0)), ["dog"]),
        (sentence("[MASK] x [MASK]", span("cat", 0), span("rare", 1, source="tagger")), ["dog", "rare"]),
    ]
    for part, (line, words) in zip((first, second), lines, strict=True):
        whole.add(line, words)
        part.add(line, words)
    for part in (first, second):
        total.add_plain(json.loads(json.dumps(part.as_plain())))
    assert total.measured() == whole.measured()


def test_without_word_counts_nothing_is_expected():
    restoration = Restoration(None)
    restoration.add(sentence("[MASK]", span("dog", 0)), ["dog"])
    measured = restoration.measured()
    assert measured["overall"]["rate"] == 1.0
    assert measured["overall"]["expected_by_frequency"] is None
    assert measured["by_frequency"] is None


def test_nothing_masked_is_undefined():
    measured = Restoration(GENERIC).measured()
    assert measured["overall"] == {
        "places": 0, "restored": 0, "rate": None, "rate_ci": None, "expected_by_frequency": None,
    }  # fmt: skip
    assert measured["by_source"] == {}


@pytest.mark.parametrize(
    ("rank", "bucket"),
    [
        (1, "1-10"), (10, "1-10"), (11, "11-100"), (100, "11-100"), (101, "101-1000"), (100_001, "100001-1000000"),
        (None, "unranked"),
    ],
)  # fmt: skip
def test_buckets_are_powers_of_ten(rank, bucket):
    assert frequency_bucket(rank) == bucket


def test_ranks_are_of_folded_words():
    frequencies = WordFrequencies.of([("the", 9), ("Dog", 3), ("dog", 3), ("cat", 5), ("ape", 5), ("x", 99)])
    assert frequencies.ranks() == {"the": 1, "dog": 2, "ape": 3, "cat": 4}


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        (5, 10, (0.2366, 0.7634)),  # in tables of Wilson's interval
        (0, 10, (0.0, 0.2775)),  # z² / (n + z²)
        (1, 1, (0.2065, 1.0)),  # 1 / (1 + z²)
    ],
)
def test_wilson_interval(successes, trials, expected):
    assert wilson_interval(successes, trials) == pytest.approx(expected, abs=5e-5)


def test_wilson_interval_of_nothing():
    assert wilson_interval(0, 0) is None


def test_a_record_of_another_line_is_an_error():
    with pytest.raises(CorpusError, match="line 1: the sidecar has 1 markers and the masked text 2"):
        sentence("[MASK] and [MASK]", span("dog", 0))


def test_originals_of_merged_markers_are_all_of_them():
    line = sentence("[MASK] [MASK], [MASK]", span("Don't", 0), span("New York", 1), span("---", 2))
    assert originals_of_slots(line) == [{"don't", "new", "york"}, {"---"}]
    apart = sentence("[MASK] [MASK]", span("A", 0), span("B", 1), merge_markers=False)
    assert originals_of_slots(apart) == [{"a"}, {"b"}]
