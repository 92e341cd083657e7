"""Words, identifiers by their form, and markers in text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.identifiers import identifiers_in
from tasks.corpora.masked_text import CLASSES, Marker, count_markers, escape, parse_masked, unescape
from tasks.corpora.plain_text import plain, plain_view, stands_for_letters
from tasks.corpora.words import count_words, fold, folded_words, word_spans, words_of
from tasks.language_model.normalisation import normalise

RULES = [
    ("punctuation stays outside", 'He said: "Chicago, (maybe) now!"', ["He", "said", "Chicago", "maybe", "now"]),
    ("contractions are one word", "don't We'll o'clock O'Brien I'm", "don't We'll o'clock O'Brien I'm".split()),
    ("possessives are divided", "Tom's dog's TOM'S everyone’s", ["Tom", "dog", "TOM", "everyone"]),
    ("plural possessives", "the Smiths' house", ["the", "Smiths", "house"]),
    ("lone endings of tokenised text", "Tom 's I 'm they 'll", ["Tom", "I", "they"]),
    ("apostrophes at the border", "'tis goin' rock 'n' roll", ["tis", "goin", "rock", "n", "roll"]),
    ("hyphens divide", "Chicago-based well-known Jean-Luc", ["Chicago", "based", "well", "known", "Jean", "Luc"]),
    ("joined digits", "3.14 10:30 1,000 2018-05-02 555-1234 1/2", "3.14 10:30 1,000 2018-05-02 555-1234 1/2".split()),
    ("digits with letters", "5pm 1st B2B covid19", ["5pm", "1st", "B2B", "covid19"]),
    ("signs of numbers", "$5,000.00 50% +1-555-123-4567.", ["5,000.00", "50", "1-555-123-4567"]),
    ("initials", "the U.S. Army, e.g. at 5 p.m.", ["the", "U.S", "Army", "e.g", "at", "5", "p.m"]),
    ("a missing space is no initial", "I.am here.How", ["I", "am", "here", "How"]),
    ("ampersands", "AT&T R&B you & me", ["AT&T", "R&B", "you", "me"]),
    ("e-mail", "mail tom.o-b+x@mail.example.co.uk, ok", ["mail", "tom.o-b+x@mail.example.co.uk", "ok"]),
    ("URL", "see https://a.b/c?d=e&f#g). now", ["see", "https://a.b/c?d=e&f#g", "now"]),
    ("URL without scheme", "(www.x.org/y) google.com/a! example.org", ["www.x.org/y", "google.com/a", "example.org"]),
    ("handles and tags", "hey @tom_s: hi #nyc2020", ["hey", "@tom_s", "hi", "#nyc2020"]),
    ("underscores", "_so_ snake_case a__b", ["so", "snake_case", "a__b"]),
    ("emoji are no words", "hi 😀 👨‍👩‍👧 ❤️ 🇺🇸 there😀", ["hi", "there"]),
    ("combining accents", "cafe\u0301 is", ["cafe\u0301", "is"]),
    ("Devanagari vowel signs", "हिन्दी में", ["हिन्दी", "में"]),
    ("Cyrillic, Greek, Arabic", "Привет κόσμε سلام", ["Привет", "κόσμε", "سلام"]),
    ("no spaces in Chinese", "你好，世界", ["你好", "世界"]),
    ("control characters divide", "Tom\x00Smith a\x07b", ["Tom", "Smith", "a", "b"]),
    ("format characters hide nothing", "T\u200bom Sm\u00adith", ["T\u200bom", "Sm\u00adith"]),
    ("a literal marker is text", "[MASK] [PERSON]", ["MASK", "PERSON"]),
    ("single letters", "a:b:c:d:e:f", ["a", "b", "c", "d", "e", "f"]),
]


@pytest.mark.parametrize(("rule", "text", "words"), RULES, ids=[rule for rule, *_ in RULES])
def test_rule(rule, text, words):
    assert words_of(text) == words


@given(st.text(max_size=60))
def test_spans_are_ordered_disjoint_and_hold_a_letter_or_digit(text):
    position = 0
    for start, end in word_spans(text):
        assert position <= start < end <= len(text)
        assert any(map(stands_for_letters, plain(text[start:end])))
        assert not any(character.isspace() for character in text[start:end])
        position = end
    assert count_words(text) == len(word_spans(text))
    assert folded_words(text) == [fold(text[start:end]) for start, end in word_spans(text)]
    view, places = plain_view(text)
    assert len(plain(text)) == len(text)
    assert len(view) == len(text if places is None else places)


@given(st.text(max_size=40))
def test_no_letter_or_digit_is_outside_a_word_but_endings(text):
    covered = {index for start, end in word_spans(text) for index in range(start, end)}
    for index, character in enumerate(text):
        if character.isalnum() and index not in covered:
            before = plain(text)[:index].rstrip("sSdDlLrReEvVmMſ")
            assert before[-1:] in "'’ʼ＇", text


@pytest.mark.parametrize(
    ("text", "words", "folded"),
    [
        ("Ⓐⓝⓝⓐ, met", ["Ⓐⓝⓝⓐ", "met"], ["anna", "met"]),
        ("🅐🅝🅝🅐 ⒜⒩⒩⒜", ["🅐🅝🅝🅐", "⒜⒩⒩⒜"], ["anna", "anna"]),
        ("🇦🇳🇳🇦 𝐀𝓷𝔫𝚊", ["🇦🇳🇳🇦", "𝐀𝓷𝔫𝚊"], ["anna", "anna"]),
        ("№5 and № 18", ["5", "and", "18"], ["5", "and", "18"]),
        ("🇺🇸 🇺🇸🇬🇧 🇪🇺 🏴 ☎ ©", [], []),
    ],
)
def test_signs_for_letters_are_letters_for_masking_and_for_language_models(text, words, folded):
    assert words_of(text) == words
    assert folded_words(text) == folded
    assert normalise(text) == folded


def test_words_are_folded_whatever_their_case_form_and_hidden_characters():
    assert folded_words("ＴＯＭ T\u200bo\u00adm Straße DON’T cafe\u0301") == ["tom", "tom", "strasse", "don't", "café"]


IDENTIFIERS = """fe80::dead:beef:cafe:face 2001:db8::1 2001:0db8:85a3:0000:0000:8a2e:0370:7334 ::ffff:192.0.2.1
    de:ad:be:ef:ca:fe DE-AD-BE-EF-CA-FE dead.beef.cafe 110bcd25-a55d-453a-8046-1297901ea002
    deadbeef-cafe-face-dead-beefdeadbeef DEAD-BEEF-FADE-FACE lena.brandt＠gmx.de
    4111\u20111111\u20111111\u20111111 alice\u200b.novak@\u200bexample.com"""


@pytest.mark.parametrize("word", IDENTIFIERS.split())
def test_identifiers_are_one_word(word):
    assert words_of(f"the ({word}), is") == ["the", word, "is"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("iban de89370400440532013000 please", ["de89370400440532013000"]),
        ("from fr1420041010050500013m02606", ["fr1420041010050500013m02606"]),
        ("to nl91 abna 0417 1643 00 now", ["nl91 abna 0417 1643 00"]),
        ("to GB82-WEST-1234-5698-7654-32.", ["GB82-WEST-1234-5698-7654-32"]),
        ("iban de89370400440532013001 is wrong", []),
        ("mac de:ad:be:ef:ca:fe and 00:1b:44:11:3a:b7", ["de:ad:be:ef:ca:fe", "00:1b:44:11:3a:b7"]),
        ("ip 2001:db8::1, fe80::1%eth0", ["2001:db8::1", "fe80::1%eth0"]),
        ("call 5555-1234-5678 in 2018-2019-2020", []),
        ("application no. 8374/03 and 45288/1999.", ["8374/03", "45288/1999"]),
        ("on 3/10/2003, in 2018/19, 9/10, 24/7, 1001/02/03, a 120/80.5", []),
        ("std::vector at 10:30:45 in a[1::2]", []),
    ],
)  # fmt: skip
def test_what_is_an_identifier_by_its_form(text, found):
    assert [text[start:end] for start, end in identifiers_in(text)] == found


NEAR_MARKERS = st.text(alphabet="[]\\MASKPERONa ", max_size=30) | st.lists(
    st.sampled_from(["[MASK]", "[", "]", "\\", "MASK", ":es]", "[PERSON:de]", "[\\MASK]", "x"]), max_size=8
).map("".join)
MARKERS = st.builds(Marker, st.sampled_from(CLASSES), st.sampled_from([None, "es", "gsw"]))


@given(NEAR_MARKERS)
def test_text_comes_back_and_has_no_marker(text):
    assert unescape(escape(text)) == text
    assert count_markers(escape(text)) == 0


@given(st.lists(NEAR_MARKERS.filter(bool), max_size=3), st.lists(MARKERS, max_size=3))
def test_parsing_is_the_inverse_of_formatting(texts, markers):
    pieces = [piece for pair in zip(texts, markers, strict=False) for piece in pair]
    assert parse_masked(format_masked(pieces)) == pieces
