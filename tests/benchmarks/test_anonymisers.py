"""The measures of the Text Anonymization Benchmark, on decisions made by hand."""

from benchmarks.anonymisers import entities, measured

TEXT = "Mr Jan Novak of Brno met J. Novak's lawyer on 3 May 1999 in Brno."


def span(words, start=0):
    begin = TEXT.index(words, start)
    return begin, begin + len(words)


def mention(words, entity, sort, start=0):
    begin, end = span(words, start)
    return {"start_offset": begin, "end_offset": end, "entity_id": entity, "identifier_type": sort}


DECISION = {
    "text": TEXT,
    "entities": [
        mention("Mr Jan Novak", "novak", "DIRECT"),
        mention("J. Novak", "novak", "DIRECT"),
        mention("Brno", "brno", "QUASI"),
        mention("Brno", "brno", "NO_MASK", 30),
        mention("3 May 1999", "date", "QUASI"),
        mention("lawyer", "lawyer", "NO_MASK"),
    ],
}


def figures(*spans):
    found = measured("x", {"one": DECISION}, {"one": sorted(spans)})
    return {name: found[name] for name in ("direct", "quasi", "entities", "precision")}


def test_an_entity_is_masked_where_every_mention_that_needs_it_is():
    assert entities(DECISION["entities"], "direct") == [[span("Mr Jan Novak"), span("J. Novak")]]
    assert entities(DECISION["entities"], "quasi") == [[span("Brno")], [span("3 May 1999")]]
    # A title may stay, a name may not; the second Brno need not be masked.
    assert figures(span("Jan Novak"), span("J. Novak"), span("Brno"), span("3 May 1999")) == {
        "direct": 1.0,
        "quasi": 1.0,
        "entities": 1.0,
        "precision": 1.0,
    }
    assert figures(span("Jan Novak"), span("Brno"))["direct"] == 0.0
    assert figures(span("Jan Novak"), span("Brno"))["quasi"] == 0.5
    # Punctuation may stay, a digit may not.
    initial = span("J. Novak")[0]
    assert figures(span("Jan Novak"), (initial, initial + 1), span("Novak", 20))["direct"] == 1.0
    assert figures(span("May 1999"))["quasi"] == 0.0


def test_precision_counts_tokens_that_the_annotator_masked():
    # The lawyer and the second Brno need no masking: two of four tokens are right.
    assert figures(span("Jan Novak"), span("lawyer"), span("Brno", 30))["precision"] == 0.5
