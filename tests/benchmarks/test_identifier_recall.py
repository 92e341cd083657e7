"""Recall by identifier: how it is counted."""

from collections import Counter

from benchmarks.identifier_recall import IDENTIFIERS, SENTENCES, VALUES, forms, measured
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.masking.technique import Finding


class MasksCapitals:
    """A technique that masks words with a capital."""

    def findings(self, lines):
        for line in lines:
            words = [(line.index(word), word) for word in line.split()]
            yield line, [Finding(at, at + len(word), "PERSON", "capitals") for at, word in words if word[0].isupper()]


def test_an_identifier_counts_if_every_word_is_masked():
    lines = [
        LabelledLine("call Ann Lee now", (LabelledSpan(5, 12, "PERSON"),), 1),
        LabelledLine("call Ann lee now", (LabelledSpan(5, 12, "PERSON"),), 2),
        LabelledLine("in bonn", (LabelledSpan(3, 7, "CITY"),), 3),
    ]
    assert measured(lines, MasksCapitals()) == {
        "CITY": {"identifiers": 1, "found": 0},
        "PERSON": {"identifiers": 2, "found": 1},
    }


def test_forms_hold_each_label_and_every_label_is_counted_for_an_identifier():
    lines = list(forms())
    assert Counter(line.spans[0].label for line in lines) == dict.fromkeys(VALUES, SENTENCES)
    assert all(line.text[span.start : span.end].strip() for line in lines for span in line.spans)
    counted = " ".join(labels for _, _, labels in IDENTIFIERS.values()).split()
    assert len(counted) == len(set(counted))
    assert set(VALUES) <= set(counted)
    assert [line.text for line in lines] == [line.text for line in forms()]
