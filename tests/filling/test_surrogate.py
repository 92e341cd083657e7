import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_sentences import masked
from stage_commands import settings as keys

from tasks.cli import main
from tasks.corpora.masked_text import CLASSES
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.corpora.words import fold, word_spans
from tasks.errors import CorpusError
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import MaskedSentence, Slot
from tasks.filling.methods.surrogate import SurrogateFiller
from tasks.filling.surrogates.figures import is_card, like
from tasks.filling.surrogates.values import SurrogateValues, gender_of_text

MONTHS = "January February March April May June July August September October November December".split()
VALUES = SurrogateValues()
"""Pools are made once for all tests."""


def filler(seed=1, frequencies=None, kept=None, **options):
    return SurrogateFiller(MarkerRandomness(seed), frequencies, kept, values=VALUES, **options)


def words(text, number=1, *, by=None, **options):
    found = (by or filler()).fills(masked(text, number, **options))
    return [found[slot].word for slot in range(len(found))]


def test_every_class_gives_one_word():
    text = (
        "{PERSON:Tom} {LOCATION:Chicago} {ORGANISATION:Siemens} {DATE:Monday} {NUMBER:twelve} {MONEY:900} "
        "{CONTACT:tom@web.de} {IDENTIFIER:A123} {GROUP:Germans} {WORK:Hamlet} {MISCELLANEOUS:iPhone}"
    )
    for number in range(1, 60):
        for found in (words(text, number), words(text, number, sidecar=False)):
            assert found
            assert [word for word in found if word_spans(word) != [(0, len(word))]] == []


def test_the_same_original_has_the_same_surrogate_in_a_line_and_another_one_in_another_line():
    text = "{PERSON:Tom} {PERSON:Smith} met {PERSON:Ann}, and {PERSON:Tom} paid. {PERSON:TOM}!"
    places = [words("{LOCATION:New} {LOCATION:York} or {LOCATION:York}", number) for number in range(1, 21)]
    assert all(place[1] == place[2] for place in places)
    lines = {tuple(words(text, number)) for number in range(1, 21)}
    for first, last, other, again, loud in lines:
        assert (again, loud) == (first, first.upper())
        assert len({first, last, other}) == 3
    assert len({line[0] for line in lines}) > 10


def test_in_a_corpus_the_same_original_has_the_same_surrogate_everywhere():
    everywhere = filler(consistent_within="corpus")
    lines = [words("{PERSON:Tom} is in {LOCATION:New} {LOCATION:York}", number, by=everywhere) for number in (1, 5, 90)]
    assert lines[0] == lines[1] == lines[2]
    assert words("so {PERSON:Tom} said", 7, by=everywhere)[0] == lines[0][0]
    part = words("{LOCATION:New} {LOCATION:York} or {LOCATION:York}", 3, by=everywhere)[2]
    assert part == words("in {LOCATION:York}", 4, by=everywhere)[0]
    # Another seed is another key.
    others = {words("{PERSON:Tom}", by=filler(seed, consistent_within="corpus"))[0] for seed in range(2, 12)}
    assert len(others) > 5


def test_in_a_document_the_same_original_has_the_same_surrogate_and_in_another_one_another():
    text = "{PERSON:Tom} {PERSON:Smith} is in {LOCATION:New} {LOCATION:York}"
    first, second = ([words(text, number, document=name) for number in (1, 5000)] for name in ("one", "two"))
    assert first[0] == first[1]
    assert second[0] == second[1]
    assert words("so {PERSON:Smith}, and {PERSON:TOM}", 7, document="one") == [first[0][1], first[0][0].upper()]
    assert len({words("{PERSON:Tom}", document=str(name))[0] for name in range(20)}) > 10
    # The name of a document is no class of another one.
    assert words("{PERSON:Tom}", document="") != words("{PERSON:Tom}", by=filler(consistent_within="corpus"))


@pytest.mark.parametrize(
    "card", ["4111 1111 1111 1111", "5555 5555 5555 4444", "3782 822463 10005", "2221 0000 0000 0009"]
)
def test_a_card_in_groups_is_one_number(card):
    groups = " ".join(f"{{IDENTIFIER:{group}}}" for group in card.split())
    for options in ({}, {"by": filler(consistent_within="corpus")}):
        made = [words(f"card {groups}, {{IDENTIFIER:1111}}", number, **options)[:-1] for number in range(1, 12)]
        assert all(is_card("".join(number)) for number in made)
        assert all(list(map(len, number)) == list(map(len, card.split())) for number in made)
        assert any(len(set(number)) == len(number) for number in made)


SPELLED = {
    "MASK": ("Zebra", "london", "garden", "McDonald7", "Straße", "5pm", "peter77@web.de"),
    "PERSON": ("Tom", "Mary", "Smith", "J", "J.R", "McDonald", "O'Brien", "Peter7", "@tommy"),
    "LOCATION": ("Chicago", "LA", "TX", "Rio", "Abq", "UK", "U.S", "Germany", "5th"),
    "ORGANISATION": ("Ibm", "Siemens", "NASA", "3M", "163.com", "ford"),
    "DATE": ("Monday", "May", "5pm", "3rd", "1990s", "Ramadan", "10:30Uhr"),
    "NUMBER": ("twelve", "Pair", "7k"),
    "MONEY": ("USD500", "Dollars", "5m"),
    "CONTACT": ("Tom@web.de", "@Tommy", "Https://www.foo.com/x", "tommy7", "www.Foo.com"),
    "IDENTIFIER": ("A123", "aB3xY", "ABC12xy", "Straße77", "163.com"),
    "GROUP": ("Germans", "Christian", "Zorgs"),
    "WORK": ("Hamlet", "S7"),
    "MISCELLANEOUS": ("iPhone", "Galaxy"),
}


def test_beyond_a_line_neither_spelling_nor_place_changes_the_surrogate():
    for label in CLASSES:
        frequencies = WordFrequencies.of(
            [("the", 90), ("homework", 30), ("garden", 20), ("wordhl", 9), ("Paris", 30), ("London", 9), ("Nameet", 20)]
        )
        texts = ("? is", "the ? is", "OH NO, ? IS", "Yes. ? is her mother", "Mr ?")
        for original in SPELLED[label]:
            forms = (original, original.lower(), original.upper(), original.title(), original.swapcase())
            for options in ({"consistent_within": "corpus"}, {}):
                by = filler(frequencies=frequencies, **options)
                document = None if options else "one"
                lines = [text.replace("?", f"{{{label}:{form}}}") for form in forms for text in texts]
                found = {
                    fold(words(line, number, by=by, document=document)[0]) for number, line in enumerate(lines, start=1)
                }
                assert len(found) == 1, original


def test_characters_that_change_beyond_a_line_have_the_capitals_of_each_spelling():
    for label in ["MASK", "PERSON", "ORGANISATION", "IDENTIFIER"]:
        found = [words(f"{{{label}:{form}}}", document="one")[0] for form in ("aB3xY", "ab3xy", "AB3XY")]
        assert re.fullmatch(r"[a-z][A-Z]\d[a-z][A-Z]", found[0])
        assert found[1:] == [found[0].lower(), found[0].upper()]


def test_a_seed_gives_the_same_words_in_any_order():
    text = "{PERSON:Tom} {LOCATION:Chicago} {NUMBER:55}"
    by = filler(3)
    assert [words(text, number, by=by) for number in (1, 2, 3)] == [
        words(text, number, by=filler(3)) for number in (3, 2, 1)
    ][::-1]
    assert words(text, by=filler(3)) != words(text, by=filler(4))


def test_gender_by_name_and_by_pronoun():
    for number in range(1, 30):
        assert VALUES.gender_of_name(words("{PERSON:Mary} came", number)[0]) is not False
        assert VALUES.gender_of_name(words("{PERSON:William} came", number)[0]) is not True
        assert VALUES.gender_of_name(words("{PERSON:Zorblax} and her dog", number)[0]) is not False
        assert VALUES.gender_of_name(words("{PERSON:x} and his dog", number, sidecar=False)[0]) is not True
    assert gender_of_text(["he said that she"]) is None


def test_a_name_of_several_words_is_first_name_first():
    last_names = 0
    for number in range(1, 30):
        first, last = words("{PERSON:Zorblax} {PERSON:Quux} came", number)
        assert VALUES.is_last_name(first) is False or VALUES.gender_of_name(first) is not None
        last_names += VALUES.is_last_name(last) is True
    assert last_names > 20


def test_the_form_of_the_original():
    strong = WordFrequencies(("shit", "garden", "1996", "5pm"), np.array([3, 1, 9, 9]))
    for text, form in [
        ("{PERSON:J}. Miller", r"[A-Z]"),
        ("{PERSON:J.R}", r"[A-Z]\.[A-Z]"),
        ("{PERSON:tom}", r"[a-z']+"),
        ("{PERSON:Иванов1}", r"[A-Z][a-z]{5}\d"),
        ("{PERSON:李}", r"[A-Z][A-Za-z']+|[a-z']+"),
        ("{LOCATION:TX}", r"[A-Z]{2}"),
        ("{LOCATION:Main} {LOCATION:Street}", r"(Street|Avenue|Road|Lane|Drive|Boulevard)"),
        ("{ORGANISATION:IBM}", r"[A-Z]{3}"),
        ("{ORGANISATION:Acme} {ORGANISATION:Inc}", r"(Inc|Corp|Ltd|LLC|Co|PLC|GmbH|AG)"),
        ("{ORGANISATION:Рога7}", r"[A-Z][a-z]{3}\d"),
        ("{GROUP:Germans}", r"[A-Z][a-z]+"),
        ("{CONTACT:@tommy}", r"@\w+"),
        ("{CONTACT:https://www.foo.com/x}", r"https://www\.[a-z0-9-]+(\.[a-z]+)+/\w+"),
        ("{CONTACT:bit.ly/abc}", r"[a-z0-9-]+(\.[a-z]+)+/\w+"),
        ("{CONTACT:http://foo.com}", r"http://[a-z0-9-]+(\.[a-z]+)+"),
        ("{CONTACT:555-1234}", r"\d{3}-\d{4}"),
        ("{MONEY:5,000}", r"[1-9],\d{3}"),
        ("{NUMBER:3.14}", r"[1-9]\.\d\d"),
        ("{IDENTIFIER:ИВАНОВ77}", r"[A-Z]{6}\d\d"),
        ("{IDENTIFIER:Müller77}", r"[A-Z][a-z]{5}\d\d"),
        # Without a class: signs are for signs, letters beside figures change too, and no word is a strong one.
        ("{MASK:@tommy}", r"@\w+"),
        ("{MASK:U.S}", r"[A-Z]\.[A-Z]"),
        ("{MASK:AT&T}", r"[A-Z]{2}&[A-Z]"),
        ("{MASK:www.foo.com}", r"www\.[a-z0-9-]+(\.[a-z]+)+"),
        ("{MASK:dog}", "garden"),
        ("{MASK:peter1990}", r"[a-z]{5}\d{4}"),
        ("{MASK:katharina_schmidt7}", r"[a-z]{9}_[a-z]{7}\d"),
        ("{MASK:иванов1985}", r"[a-z]{6}\d{4}"),
        ("{MASK:5pm}", r"\d[ap]m"),
        ("{MASK:1st}", r"1st|2nd|3rd|[4-9]th"),
    ]:
        for number in range(1, 20):
            assert re.fullmatch(form, words(f"see {text}", number, by=filler(frequencies=strong))[-1])


def test_the_kind_of_place():
    countries, cities = set(), set()
    for number in range(1, 60):
        countries.add(words("{LOCATION:Germany}", number)[0])
        cities.add(words("{LOCATION:Chicago}", number)[0])
    assert len({"France", "Spain", "Italy", "Japan", "China", "Brazil"} & countries) > 1
    assert {"France", "Spain", "Italy", "Japan"} & cities == set()


FREQUENCIES = WordFrequencies.of([("the", 1000), ("homework", 30), ("garden", 20), ("Paris", 30), ("Tuesday", 20)])
KEPT = AllowedWords(["the"])


def test_without_any_class_words_are_drawn_by_frequency_in_the_form_of_the_original():
    by = filler(frequencies=FREQUENCIES, kept=KEPT)
    small = {words("my {MASK:dog} ran", number, by=by)[0] for number in range(1, 40)}
    capital = {words("my {MASK:Rex} ran", number, by=by)[0] for number in range(1, 40)}
    unknown = {words("My {MASK:Rex} ran", number, by=by, sidecar=False)[0] for number in range(1, 60)}
    assert small == {"homework", "garden"}
    assert capital == {"Paris", "Tuesday"}
    assert unknown == small | capital
    assert words("in {MASK:1984}", by=by)[0].isdigit()
    assert by.counts["surrogates_by_frequency"] == 138


def test_a_word_without_a_class_gets_one_of_its_ending():
    plain = [f"gar{first}{second}en" for first in "bcdfgklmnp" for second in "bcdfgklmnpt"]
    endings = {"": "", "s": "s", "ed": "ed", "ing": "ing", "ly": "ly"}
    counts = [(f"{word}{ending}", 1) for word in plain for ending in endings]
    by = filler(frequencies=WordFrequencies.of([*counts, ("Kovacs", 900), ("o'clock", 900)]))
    for original, ending in [
        *(("dog", ""), ("thing", ""), ("bus", ""), ("glass", ""), ("need", ""), ("fly", "")),
        *(("dogs", "s"), ("walked", "ed"), ("walking", "ing"), ("quickly", "ly")),
    ]:
        found = {words(f"{{MASK:{original}}} ran", number, by=by)[0] for number in range(1, 20)}
        assert found <= {like(original, f"{word}{ending}") for word in plain}
        assert len(found) > 10
    # The original is as likely as any other of its ending, so that many draws do not tell it.
    assert {words("my {MASK:garbben} ran", number, by=by)[0] for number in range(1, 2000)} == set(plain)
    # Too few words have an apostrophe: any is written.
    assert len({words("my {MASK:ma'am} ran", number, by=by)[0] for number in range(1, 20)}) > 5


def test_names_of_mixed_case_are_written_as_names_are_and_am_is_no_capital():
    for number in range(1, 20):
        assert all(word[0].isupper() for word in words("{PERSON:Poli} {PERSON:sci} came", number))
        assert all(word.islower() for word in words("So {PERSON:bruce} {PERSON:lee} came", number))
        assert not words("at 12 {DATE:AM}", number)[0].isupper()
        assert all(map(str.isupper, words("SHE CAME AT {DATE:AM} WITH {PERSON:tom}", number)))


def test_a_surrogate_is_off_the_list_of_kept_words_where_there_is_one():
    for document in [None, "one"]:
        kept = AllowedWords([*"123456789", *(fold(month) for month in MONTHS if month not in ("May", "June", "July"))])
        for number in range(1, 20):
            by = filler(number, kept=kept)
            fills = by.fills(masked("{NUMBER:7} or {DATE:May} or {DATE:june} {NUMBER:77}", number, document=document))
            assert [fills[slot].fallback for slot in range(4)] == [True, False, False, False]
            assert fills[0].word in set("123456789")
            assert fills[1].word in {"May", "June", "July"}
            assert fills[2].word in {"may", "june", "july"}


def test_without_word_counts_a_marker_without_class_is_an_error():
    with pytest.raises(CorpusError, match="line 7: a marker has no class"):
        words("my {MASK:dog} ran", 7)


def of_original(label, original, number=1, *, by=None, document=None, others=()):
    """The surrogate of one marker that stands for any text, and perhaps for others too."""
    slot = Slot(label, 0, 0)
    spans = tuple(MaskedSpan(0, len(text), label, "test", text, 0) for text in (original, *others))
    sentence = MaskedSentence(number, ("the ", " is"), (slot,), spans, document)
    return (by or filler(frequencies=FREQUENCIES)).fills(sentence)[0].word


def forms_of_words():
    parts = st.sampled_from(["163", ".com", "foo", "ИВАНОВ", "-", "77", "ß", "ı", "李", "½", "²", "@", "/", "x", "A"])
    return st.lists(parts, max_size=5).map("".join) | st.text(max_size=20)


@pytest.mark.timeout(120)
@settings(deadline=None)
@given(
    label=st.sampled_from(CLASSES), original=forms_of_words(), document=st.none() | st.just("one"),
    others=st.lists(forms_of_words(), max_size=2),
)  # fmt: skip
def test_every_original_of_every_class_gets_one_word(label, original, document, others):
    word = of_original(label, original, by=filler(frequencies=FREQUENCIES), document=document, others=others)
    assert word_spans(word) == [(0, len(word))]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "masked.txt").write_text("i am [PERSON], [PERSON] is\n\n[PERSON] [PERSON] at 5\n", encoding="utf-8")
    span = lambda start, word, marker: MaskedSpan(start, start + len(word), "PERSON", "x", word, marker)  # noqa: E731
    write_sidecar(
        tmp_path / "sidecar.jsonl",
        [[span(5, "tom", 0), span(10, "tom", 1)], [], [span(0, "Mary", 0), span(5, "Miller", 1)]],
    )
    return tmp_path


def test_the_command_writes_lines_and_counts(corpus):
    options = ["--input", corpus / "masked.txt", "--method", "surrogate", "--sidecar", corpus / "sidecar.jsonl"]
    outputs = ["--output", corpus / "filled.txt", "--report", corpus / "report.json"]
    assert main(["fill", *map(str, options + outputs)]) == 0
    lines = (corpus / "filled.txt").read_text(encoding="utf-8").splitlines()
    first, second = lines[0].removeprefix("i am ").removesuffix(" is").split(", ")
    assert first == second == first.lower()
    assert lines[1] == ""
    assert len(lines[2].split()) == 4
    text = (corpus / "report.json").read_text(encoding="utf-8")
    measured = json.loads(text)["measured"]
    assert (measured["fills"], measured["surrogates_with_original"], measured["surrogates_repeated"]) == (4, 4, 1)
    assert measured["surrogates_of_one_original"] == 1
    assert "Miller" not in text


def test_documents_are_taken_from_a_file_and_held_against_the_text(corpus, capsys):
    (corpus / "masked.txt").write_text("[PERSON] is\n[PERSON] is\n[PERSON] is\n" * 3000, encoding="utf-8")
    tom = [MaskedSpan(0, 3, "PERSON", "x", "Tom", 0)]
    write_sidecar(corpus / "sidecar.jsonl", [tom] * 9000)
    # The second document goes on in the next shard.
    (corpus / "documents.txt").write_text("a\n" * 4000 + "b\n" * 5000, encoding="utf-8")
    arguments = ["fill", "--input", corpus / "masked.txt", "--output", corpus / "filled.txt"]
    arguments += ["--documents", corpus / "documents.txt", "--set", f"resources.work_folder={corpus / 'work'}"]
    arguments += ["--method", "surrogate", *keys("consistent_within=document")]
    surrogate = [*arguments, "--sidecar", corpus / "sidecar.jsonl"]
    assert main([*map(str, surrogate)]) == 0
    lines = (corpus / "filled.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(lines[:4000])) == len(set(lines[4000:])) == 1
    assert lines[0] != lines[-1]
    assert main([*map(str, arguments)]) == 1
    assert "needs the masked words; give --sidecar" in capsys.readouterr().err
    (corpus / "documents.txt").write_text("a\n" * 8999, encoding="utf-8")
    assert main([*map(str, surrogate)]) == 1
    assert "the documents file ends before line 9000" in capsys.readouterr().err


@pytest.mark.parametrize("within", ["line", "corpus"])
def test_nobody_without_the_sidecar_can_try_out_which_original_gives_a_surrogate(tmp_path, within):
    """Who guesses the originals right but for one line draws other surrogates with the same seed."""
    names = ["Tom", "Anna", "Peter", "Maria", "John", "Lucy", "Mark", "Emma", "Paul", "Jane"]
    (tmp_path / "masked.txt").write_text("i am [PERSON]\n" * len(names), encoding="utf-8")

    def surrogates(*originals):
        spans = [[MaskedSpan(5, 9, "PERSON", "tagger", original, 0)] for original in originals]
        write_sidecar(tmp_path / "sidecar.jsonl", spans)
        options = ["--input", tmp_path / "masked.txt", "--method", "surrogate", "--sidecar", tmp_path / "sidecar.jsonl"]
        options += [*keys(f"consistent_within={within}"), "--output", tmp_path / "filled.txt", "--seed", "1"]
        assert main(["fill", *map(str, options)]) == 0
        return (tmp_path / "filled.txt").read_text(encoding="utf-8").splitlines()

    published = surrogates(*names)
    assert surrogates(*names) == published
    guessed = surrogates(*names[:-1], "Rose")
    assert sum(map(str.__eq__, published[:-1], guessed[:-1])) <= 2
