"""Our patterns for presidio: what they take (in braces) and what they leave, sentence by sentence."""

import re
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
    longest = (one for one in spans if not any(o != one and o[0] <= one[0] and one[1] <= o[1] for o in spans))
    return [text[start:end] for start, end in sorted(longest)]


FOUND = {
    "STREET_ADDRESS": [
        "She moved to {231 West Eighth Street} last May.", "It is at {12 Oak Ave., Apt. 4B}, so ring twice.",
        "Write to {12 Oak Avenue, Springfield, IL 62704} please.", "Ich wohne {Lindenstraße 7} in Ulm.",
        "He lives in {Søndergade 52}, Odense", "Meet at {29 Rue de Tanger} tonight", "{Via Roma 131} is closed",
        "{ul. Cicha 86}", "Send it to {P.O. Box 242} today", "{PSC 2581, Box 0041\nAPO AP 32376}",
        "{the corner of Main Street and Fifth Avenue}", "{Allika 46\n Suite 501}", "in {Suite 501}",
        "I saw 2 cars down the street.", "a 1994 U.S. Supreme Court decision", "In August 1987 it rained.",
        "the avenue that was chosen in 1947", "I live 5 minutes from the road.", "Windows 10 and iPhone 5",
        "a box of 12 apples in a flat place", "Chapter 5, Verse 3",
    ],
    "ZIP_CODE": [
        "ZIP: {8592}", "my zip code is {90210-1234} now", "postcode {EC1A 1BB}", "Springfield, IL {62704}",
        "I paid 62704 for it", "zip your jacket 12345", "OK 12 and IN 3 days",
    ],
    "AGE": [
        "She is {34} years old.", "a {16}-year-old boy", "I'm {58} y/o", "died aged {4} months",
        "at the age of {101} he ran", "I just turned {47}", "I'll turn {52}.", "I'm {40}.",
        "my daughter is {7} and reads", "({34M}) looking for", "it turned 180 degrees", "it took 34 years",
        "turn 5 pages", "I'm 100% sure", "he was 2.5 metres away", "page 34",
    ],
    "TITLE": [
        "{Mr.} Smith and {Mrs} Jones", "ask {dr.} who", "a delay of 20 ms then", "DRIVE a Ms",
    ],
    "USER_NAME": [
        "thanks {@anna_b} for this", "{u/some-body} said", "My username is {chatter123}", "login: '{tom.smith}'",
        "username and password", "mail tom@home.org", "5 @ 3 euros",
    ],
}  # fmt: skip
WITH_CONTEXT = {
    "STREET_ADDRESS": ["Tosh lives at {Maneezi 75}", "in March 75 and June 1987"],
    "PHONE_NUMBER": [
        "call {0494 92 82 32} now", "call {450 0840}?", "reach 40.20 per barrel", "from 2019-2020", "1,234 567",
    ],
}  # fmt: skip
CASES = [
    (name, text, alone)
    for table, alone in ((FOUND, True), (WITH_CONTEXT, False))
    for name, texts in table.items()
    for text in texts
]


@pytest.mark.parametrize(("entity_type", "text", "alone"), CASES)
def test_what_a_pattern_takes_alone_or_with_a_context_word(entity_type, text, alone):
    unmarked, marked = re.sub("[{}]", "", text), re.findall(r"\{([^}]*)\}", text)
    assert found(entity_type, unmarked) == (marked if alone else [])
    assert alone or found(entity_type, unmarked, lowest=0.0) == marked


@pytest.mark.parametrize("piece", "A |Aa |1 |12 A |rue de |Rue A |@|Apt 1, |1-|corner of A ".split("|"))
def test_patterns_are_fast_on_hostile_text(piece):
    text = piece * (8000 // len(piece))
    started = time.process_time()
    for group in PATTERN_GROUPS:
        for pattern in group.patterns:
            for _ in regex.finditer(pattern.expression, text, regex.DOTALL):
                pass
    assert time.process_time() - started < 2.0
