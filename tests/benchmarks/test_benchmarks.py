"""What the benchmarks count, on inputs made by hand; and pages that show the stored numbers, and no others."""

import json

import pytest

from benchmarks import court_tables, entities, identifier_recall, nbest
from benchmarks.court_texts import joined
from benchmarks.stored_numbers import RESULTS, ROOT, with_table

TABLES = {
    **{name: (page, table) for name, (page, _, table) in court_tables.TABLES.items()},
    "entities": ("docs/detectors.md", entities.table),
    "identifier_recall": ("docs/privacy.md", identifier_recall.table),
    "nbest": ("docs/speech.md", nbest.table),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_the_stored_numbers(name):
    place, table = TABLES[name]
    page = (ROOT / place).read_text(encoding="utf-8")
    assert page == with_table(page, name, table(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))))


TEXT = "Mr Jan Novak of Brno met J. Novak's lawyer on 3 May 1999 in Brno."


def span(words, start=0):
    begin = TEXT.index(words, start)
    return begin, begin + len(words)


MENTIONS = [
    (span("Mr Jan Novak"), "novak", "DIRECT"), (span("J. Novak"), "novak", "DIRECT"), (span("Brno"), "brno", "QUASI"),
    (span("Brno", 30), "brno", "NO_MASK"), (span("3 May 1999"), "date", "QUASI"), (span("lawyer"), "lawyer", "NO_MASK"),
]  # fmt: skip
FIELDS = ("start_offset", "end_offset", "entity_id", "identifier_type")
DECISION = {"text": TEXT, "entities": [dict(zip(FIELDS, (*place, *more), strict=True)) for place, *more in MENTIONS]}


def court_figures(*spans):
    """The measures of the Text Anonymization Benchmark."""
    found = court_tables.of_spans("x", {"one": DECISION}, {"one": sorted(spans)})
    return {name: found[name] for name in ("direct", "quasi", "entities", "precision")}


def test_an_entity_is_masked_where_every_mention_that_needs_it_is():
    # A title may stay, a name may not; the second Brno need not be masked.
    everything = court_figures(span("Jan Novak"), span("J. Novak"), span("Brno"), span("3 May 1999"))
    assert everything == dict.fromkeys(("direct", "quasi", "entities", "precision"), 1.0)
    in_part = court_figures(span("Jan Novak"), span("Brno"))
    assert (in_part["direct"], in_part["quasi"]) == (0.0, 0.5)
    # Punctuation may stay, a digit may not.
    initial = span("J. Novak")[0]
    assert court_figures(span("Jan Novak"), (initial, initial + 1), span("Novak", 20))["direct"] == 1.0
    assert court_figures(span("May 1999"))["quasi"] == 0.0
    # The lawyer and the second Brno need no masking: two of four tokens are right.
    assert court_figures(span("Jan Novak"), span("lawyer"), span("Brno", 30))["precision"] == 0.5
    # Words with only spaces or hyphens between them are one span.
    assert joined([(0, 2), (3, 6), (7, 12), (13, 15)], "Mr Jan,Novak-Li") == [(0, 6), (7, 15)]


def test_an_entity_counts_with_equal_borders_and_class():
    wanted = [{(0, 9, "PERSON"), (11, 15, "LOCATION")}, {(0, 4, "PERSON")}]
    found = [{(0, 9, "PERSON"), (11, 15, "PERSON"), (16, 19, "PERSON")}, {(0, 3, "PERSON")}]
    figures = entities.scores(wanted, found)
    # One of three entities and one of four findings have equal borders and class; two each have equal borders.
    assert (figures["typed_recall"], figures["typed_precision"]) == pytest.approx((1 / 3, 1 / 4))
    assert (figures["typed_f1"], figures["untyped_f1"]) == pytest.approx((2 * 1 / (3 + 4), 2 * 2 / (3 + 4)))
