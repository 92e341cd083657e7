"""Recall by identifier: how it is counted, and that docs/privacy.md shows the stored numbers."""

import json
from pathlib import Path

from benchmarks.identifier_recall import measured, table
from benchmarks.readme_tables import with_table
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.masking.technique import Finding

ROOT = Path(__file__).parents[2]


class MasksCapitals:
    """A technique that masks words with a capital."""

    def findings(self, lines):
        for line in lines:
            words = [(line.index(word), word) for word in line.split()]
            yield line, [Finding(at, at + len(word), "PERSON", "capitals") for at, word in words if word[0].isupper()]


def test_the_page_shows_the_stored_numbers():
    page = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    results = json.loads((ROOT / "benchmarks" / "results" / "identifier_recall.json").read_text(encoding="utf-8"))
    assert page == with_table(page, "identifiers", table(results))


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
