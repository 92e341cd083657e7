"""Our patterns for presidio: what they take and what they leave, sentence by sentence."""

import time

import pytest
import regex

from tasks.masking.taggers.presidio_patterns import PATTERN_GROUPS

ALONE = 0.35


def found(entity_type, text, lowest=ALONE):
    """Stretches that patterns of a type match, without those inside a longer one."""
    (group,) = [group for group in PATTERN_GROUPS if group.entity_type == entity_type]
    spans = {
        match.span()
        for pattern in group.patterns
        if pattern.score >= lowest
        for match in regex.finditer(pattern.expression, text, regex.DOTALL)
    }
    longest = [
        span
        for span in spans
        if not any(other != span and other[0] <= span[0] and span[1] <= other[1] for other in spans)
    ]
    return [text[start:end] for start, end in sorted(longest)]


FOUND = {
    "STREET_ADDRESS": [
        ("She moved to 231 West Eighth Street last May.", ["231 West Eighth Street"]),
        ("It is at 12 Oak Ave., Apt. 4B, so ring twice.", ["12 Oak Ave., Apt. 4B"]),
        ("Write to 12 Oak Avenue, Springfield, IL 62704 please.", ["12 Oak Avenue, Springfield, IL 62704"]),
        ("Ich wohne Lindenstraße 7 in Ulm.", ["Lindenstraße 7"]),
        ("He lives in Søndergade 52, Odense", ["Søndergade 52"]),
        ("Meet at 29 Rue de Tanger tonight", ["29 Rue de Tanger"]),
        ("Via Roma 131 is closed", ["Via Roma 131"]),
        ("ul. Cicha 86", ["ul. Cicha 86"]),
        ("Send it to P.O. Box 242 today", ["P.O. Box 242"]),
        ("PSC 2581, Box 0041\nAPO AP 32376", ["PSC 2581, Box 0041\nAPO AP 32376"]),
        ("the corner of Main Street and Fifth Avenue", ["the corner of Main Street and Fifth Avenue"]),
        ("Allika 46\n Suite 501", ["Allika 46\n Suite 501"]),
        ("in Suite 501", ["Suite 501"]),
        ("I saw 2 cars down the street.", []),
        ("a 1994 U.S. Supreme Court decision", []),
        ("In August 1987 it rained.", []),
        ("the avenue that was chosen in 1947", []),
        ("I live 5 minutes from the road.", []),
        ("Windows 10 and iPhone 5", []),
        ("a box of 12 apples in a flat place", []),
        ("Chapter 5, Verse 3", []),
    ],
    "ZIP_CODE": [
        ("ZIP: 8592", ["8592"]),
        ("my zip code is 90210-1234 now", ["90210-1234"]),
        ("postcode EC1A 1BB", ["EC1A 1BB"]),
        ("Springfield, IL 62704", ["62704"]),
        ("I paid 62704 for it", []),
        ("zip your jacket 12345", []),
        ("OK 12 and IN 3 days", []),
    ],
    "AGE": [
        ("She is 34 years old.", ["34"]),
        ("a 16-year-old boy", ["16"]),
        ("I'm 58 y/o", ["58"]),
        ("died aged 4 months", ["4"]),
        ("at the age of 101 he ran", ["101"]),
        ("I just turned 47", ["47"]),
        ("I'll turn 52.", ["52"]),
        ("I'm 40.", ["40"]),
        ("my daughter is 7 and reads", ["7"]),
        ("(34M) looking for", ["34M"]),
        ("it turned 180 degrees", []),
        ("it took 34 years", []),
        ("turn 5 pages", []),
        ("I'm 100% sure", []),
        ("he was 2.5 metres away", []),
        ("page 34", []),
    ],
    "TITLE": [
        ("Mr. Smith and Mrs Jones", ["Mr.", "Mrs"]),
        ("ask dr. who", ["dr."]),
        ("a delay of 20 ms then", []),
        ("DRIVE a Ms", []),
    ],
    "USER_NAME": [
        ("thanks @anna_b for this", ["@anna_b"]),
        ("u/some-body said", ["u/some-body"]),
        ("My username is chatter123", ["chatter123"]),
        ("login: 'tom.smith'", ["tom.smith"]),
        ("username and password", []),
        ("mail tom@home.org", []),
        ("5 @ 3 euros", []),
    ],
}
WITH_CONTEXT = {
    "STREET_ADDRESS": [("Tosh lives at Maneezi 75", ["Maneezi 75"]), ("in March 75 and June 1987", [])],
    "PHONE_NUMBER": [
        ("call 0494 92 82 32 now", ["0494 92 82 32"]),
        ("call 450 0840?", ["450 0840"]),
        ("reach 40.20 per barrel", []),
        ("from 2019-2020", []),
        ("1,234 567", []),
    ],
}


@pytest.mark.parametrize(("entity_type", "text", "words"), [(name, *row) for name in FOUND for row in FOUND[name]])
def test_what_a_pattern_takes_alone(entity_type, text, words):
    assert found(entity_type, text) == words


@pytest.mark.parametrize(
    ("entity_type", "text", "words"), [(name, *row) for name in WITH_CONTEXT for row in WITH_CONTEXT[name]]
)
def test_what_a_pattern_takes_with_a_context_word(entity_type, text, words):
    assert found(entity_type, text, lowest=0.0) == words
    assert found(entity_type, text) == []


HOSTILE = "a|A |Aa |1 |12 A |12 Oak |Suite |de |rue de |Rue A |@|u/|Apt 1, |1-|\n|corner of A "


@pytest.mark.parametrize("piece", HOSTILE.split("|"))
def test_patterns_are_fast_on_hostile_text(piece):
    text = piece * (8000 // len(piece))
    started = time.process_time()
    for group in PATTERN_GROUPS:
        for pattern in group.patterns:
            for _ in regex.finditer(pattern.expression, text, regex.DOTALL):
                pass
    assert time.process_time() - started < 2.0
