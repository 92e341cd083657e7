"""Surrogates: which originals get the same, and which have the form, the case and the frequency of their original."""

import re
from pathlib import Path

import numpy as np
import pytest
from fill_command import fill, write, write_masked
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_sentences import masked

from tasks.corpora.masked_text import CLASSES
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, word_spans
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import MaskedSentence, Slot
from tasks.filling.surrogates.filler import SurrogateFiller

MONTHS = "January February March April May June July August September October November December".split()
FREQUENCIES = WordFrequencies.of([("the", 1000), ("homework", 30), ("garden", 20), ("Paris", 30), ("Tuesday", 20)])


def filler(seed=1, frequencies=None, allowed_words=None, **options):
    return SurrogateFiller(MarkerRandomness(seed), frequencies, allowed_words, **options)


def words(text, number=1, *, by=None, **options):
    found = (by or filler()).fills(masked(text, number, **options))
    return [found[slot].word for slot in range(len(found))]


def test_the_same_original_has_the_same_surrogate_in_a_line_and_another_one_in_another_line():
    text = "{PERSON:Tom} {PERSON:Smith} met {PERSON:Ann}, and {PERSON:Tom} paid. {PERSON:TOM}!"
    places = [words("{LOCATION:New} {LOCATION:York} or {LOCATION:York}", number) for number in range(1, 21)]
    assert all(place[1] == place[2] for place in places)
    lines = {tuple(words(text, number)) for number in range(1, 21)}
    for first, last, other, again, loud in lines:
        assert (again, loud) == (first, first.upper())
        assert len({first, last, other}) == 3
    assert len({line[0] for line in lines}) > 10


SPELLED = {
    "MASK": "Zebra london garden McDonald7 Straße 5pm peter77@web.de",
    "PERSON": "Tom Mary Zorgel J J.R O'Brien Peter7 @tommy",
    "LOCATION": "Chicago LA TX Rio Abq UK U.S Germany 5th",
    "ORGANISATION": "Ibm Siemens NASA 3M 163.com ford",
    "DATE": "Monday May 5pm 3rd 1990s Ramadan 10:30Uhr",
    "NUMBER": "twelve Pair 7k",
    "MONEY": "USD500 Dollars 5m",
    "CONTACT": "Tom@web.de @Tommy Https://www.foo.com/x tommy7 www.Foo.com",
    "IDENTIFIER": "A123 aB3xY ABC12xy Straße77 163.com",
    "GROUP": "Germans Christian Zorgs",
    "WORK": "Hamlet S7",
    "MISCELLANEOUS": "iPhone Galaxy",
}


@pytest.mark.parametrize("document", [None, "one"], ids=["corpus", "document"])
def test_beyond_a_line_neither_spelling_nor_place_changes_the_surrogate(document):
    assert SPELLED.keys() == set(CLASSES)
    texts = ("? is", "the ? is", "OH NO, ? IS", "Yes. ? is her mother", "Mr ?")
    more = WordFrequencies.of([*FREQUENCIES.items(), ("wordhl", 9), ("London", 9), ("Nameet", 20)])
    by = filler(frequencies=more, consistent_within="line" if document else "corpus")
    for label, originals in SPELLED.items():
        for original in originals.split():
            forms = (original, original.lower(), original.upper(), original.title(), original.swapcase())
            lines = [text.replace("?", f"{{{label}:{form}}}") for form in forms for text in texts]
            found = {fold(words(line, number, by=by, document=document)[0]) for number, line in enumerate(lines, 1)}
            assert len(found) == 1, original


def test_a_surrogate_has_the_form_of_the_original():
    by = filler(frequencies=WordFrequencies(("shit", "garden", "1996", "5pm"), np.array([3, 1, 9, 9])))
    for text, form in [
        ("{PERSON:J.R}", r"[A-Z]\.[A-Z]"),
        ("{PERSON:tom}", r"[a-z']+"),
        ("{PERSON:李}", r"[A-Z][A-Za-z']+|[a-z']+"),
        ("{LOCATION:TX}", r"[A-Z]{2}"),
        ("{ORGANISATION:Acme} {ORGANISATION:Inc}", r"(Inc|Corp|Ltd|LLC|Co|PLC|GmbH|AG)"),
        ("{CONTACT:https://www.foo.com/x}", r"https://www\.[a-z0-9-]+(\.[a-z]+)+/\w+"),
        ("{CONTACT:555-1234}", r"\d{3}-\d{4}"),
        ("{MONEY:5,000}", r"[1-9],\d{3}"),
        ("{IDENTIFIER:Müller77}", r"[A-Z][a-z]{5}\d\d"),
        # Without a class: signs are for signs, letters beside figures change too, and no word is a strong one.
        ("{MASK:AT&T}", r"[A-Z]{2}&[A-Z]"),
        ("{MASK:dog}", "garden"),
        ("{MASK:иванов1985}", r"[a-z]{6}\d{4}"),
    ]:
        for number in range(1, 20):
            assert re.fullmatch(form, words(f"see {text}", number, by=by)[-1])


def test_without_any_class_words_are_drawn_by_frequency_in_the_form_of_the_original():
    by = filler(frequencies=FREQUENCIES, allowed_words=AllowedWords(["the"]))
    small = {words("my {MASK:dog} ran", number, by=by)[0] for number in range(1, 40)}
    capital = {words("my {MASK:Rex} ran", number, by=by)[0] for number in range(1, 40)}
    unknown = {words("My {MASK:Rex} ran", number, by=by, sidecar=False)[0] for number in range(1, 60)}
    assert small == {"homework", "garden"}
    assert capital == {"Paris", "Tuesday"}
    assert unknown == small | capital
    assert words("in {MASK:1984}", by=by)[0].isdigit()
    assert by.counts["surrogates_by_frequency"] == 138


def test_the_original_is_as_likely_as_any_other_word_of_its_ending():
    """So that many draws do not tell it."""
    plain = [f"gar{first}{second}en" for first in "bcdfgklmnp" for second in "bcdfgklmnpt"]
    counts = [(f"{word}{ending}", 1) for word in plain for ending in ("", "s", "ing")]
    by = filler(frequencies=WordFrequencies.of([*counts, ("Kovacs", 900)]))
    assert {words("my {MASK:garbben} ran", number, by=by)[0] for number in range(1, 2000)} == set(plain)
    assert {words("{MASK:walking} ran", number, by=by)[0][-3:] for number in range(1, 20)} == {"ing"}


@pytest.mark.parametrize("document", [None, "one"])
def test_a_surrogate_is_off_the_list_of_kept_words_where_there_is_one(document):
    kept = AllowedWords([*"123456789", *(fold(month) for month in MONTHS if month not in ("May", "June", "July"))])
    for number in range(1, 20):
        by = filler(number, allowed_words=kept)
        fills = by.fills(masked("{NUMBER:7} or {DATE:May} or {DATE:june} {NUMBER:77}", number, document=document))
        assert [fills[slot].fallback for slot in range(4)] == [True, False, False, False]
        assert fills[0].word in set("123456789")
        assert fills[1].word in {"May", "June", "July"}
        assert fills[2].word in {"may", "june", "july"}


PARTS = ["163", ".com", "foo", "ИВАНОВ", "-", "77", "ß", "ı", "李", "½", "²", "@", "/", "x", "A"]
ODD_WORDS = st.lists(st.sampled_from(PARTS), max_size=5).map("".join) | st.text(max_size=20)


@settings(deadline=None, max_examples=40)
@given(label=st.sampled_from(CLASSES), originals=st.lists(ODD_WORDS, max_size=3), document=st.sampled_from([None, "1"]))
def test_every_original_of_every_class_gets_one_word(label, originals, document):
    """One marker for several words, or for what nobody knows."""
    spans = tuple(MaskedSpan(0, len(text), label, "test", text, 0) for text in originals)
    sentence = MaskedSentence(1, ("the ", " is"), (Slot(label, 0, 0),), spans, document)
    word = filler(frequencies=FREQUENCIES).fills(sentence)[0].word
    assert word_spans(word) == [(0, len(word))]


@pytest.fixture
def counts(folder):
    write("counts.tsv", ["the\t9", "Paris\t2"])
    return {"word_counts": "counts.tsv", "sidecar": "sidecar.jsonl"}


def test_the_command_counts_surrogates_and_reports_no_original(counts):
    write_masked(["i am {PERSON:tom}, {PERSON:tom} is", "", "{PERSON:Mary} {PERSON:Miller} at 5"], "class")
    lines, measured = fill("surrogate", **counts)
    first, second = lines[0].removeprefix("i am ").removesuffix(" is").split(", ")
    assert first == second == first.lower()
    assert (measured["fills"], measured["surrogates_with_original"], measured["surrogates_repeated"]) == (4, 4, 1)
    assert measured["surrogates_of_one_original"] == 1
    assert "Miller" not in Path("report.json").read_text(encoding="utf-8")


def test_nobody_without_the_sidecar_can_try_out_which_original_gives_a_surrogate(counts):
    """Who guesses the originals right but for one line draws other surrogates with the same seed."""
    names = ["Tom", "Anna", "Peter", "Maria", "John", "Lucy", "Mark", "Emma", "Paul", "Jane"]

    def surrogates(within, *originals):
        write_masked([f"i am {{PERSON:{original}}}" for original in originals], "class")
        return fill("surrogate", f"consistent_within={within}", seed=1, **counts)[0]

    for within in ("line", "corpus"):
        published, guessed = surrogates(within, *names), surrogates(within, *names[:-1], "Rose")
        assert sum(map(str.__eq__, published[:-1], guessed[:-1])) <= 2
    assert surrogates("corpus", *names) == published
