"""What hides words from patterns and models: taggers see plain signs, and the masks are those of the raw line."""

import pytest

from tasks.masking.settings import CrfTagger, PresidioTagger
from tasks.masking.taggers.entity_tagger import TaggedEntities, load_tagger
from tasks.masking.technique import MaskingTally


@pytest.fixture(scope="module")
def presidio():
    return TaggedEntities(load_tagger(PresidioTagger(kind="presidio"), threads=1))


@pytest.fixture(scope="module")
def crf():
    return TaggedEntities(load_tagger(CrfTagger(kind="crf"), threads=1))


def masked(technique, line):
    ((text, _),) = technique.mask([line], "class", MaskingTally(), with_spans=False)
    return text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("his card: 4111\u00a01111\u202f1111\u20071111, ok", "his card: {0}\u00a0{0}\u202f{0}\u2007{0}, ok"),
        ("his card: 4111\u20111111\u20111111\u20111111, ok", "his card: {0}, ok"),
        ("his card: 4111\u20131111\u20131111\u20131111, ok", "his card: {0}\u2013{0}\u2013{0}\u2013{0}, ok"),
        ("his card: 4111\u200b1111\u200b1111\u200b1111, ok", "his card: {0}, ok"),
        ("his card: ４１１１１１１１１１１１１１１１, ok", "his card: {0}, ok"),
        ("😀 my ip is A099::09C0:876A:130B \u2066thanks\u2069", "😀 my ip is {0} \u2066thanks\u2069"),
    ],
)
def test_numbers_in_other_signs(presidio, line, text):
    assert masked(presidio, line) == text.format("[IDENTIFIER]")


@pytest.mark.parametrize(
    "address",
    [
        "anna.k@corp.local",
        "anna@intranet",
        "eva.k@mail.internal",
        "tom@db01.lan",
        "max@firma.example",
        "ann@example.nosuchsuffix",
        "lena.brandt＠gmx.de",
        "alice\u200b.novak@\u200bexample.com",
    ],
)
def test_every_address_is_a_contact(presidio, address):
    assert masked(presidio, f"write to {address}, please") == "write to [CONTACT], please"


@pytest.mark.parametrize("line", ["5@3 euros, a @ home", "1748503543012 please check this :)", "use std::vector here"])
def test_no_addresses_and_no_cards(presidio, line):
    assert masked(presidio, line) == line


@pytest.mark.parametrize("version", "0158f")
def test_a_uuid_of_any_version(presidio, version):
    """presidio's own recogniser checks the version and the variant."""
    assert (
        masked(presidio, f"my key deadbeef-cafe-{version}ace-feed-deadbeefcafe is out") == "my key [IDENTIFIER] is out"
    )


@pytest.mark.parametrize("stamp", ["1748503543012", "1748503543000016", "1748503543012000007"])
def test_a_time_stamp_is_no_card(presidio, stamp):
    tagger = load_tagger(PresidioTagger(kind="presidio"), threads=1)
    ((_, spans),) = tagger.tag([f"the number {stamp}"])
    assert "CREDIT_CARD" not in {span.label for span in spans}


def test_an_address_round_the_border_of_a_window(presidio):
    address = "12B Baker Street, Flat 7, London, NW1 6XE, United Kingdom"
    for before in range(880, 1000, 8):
        words = ("nothing to see " * 80)[:before].rpartition(" ")[0]
        text = masked(presidio, f"{words} {address}, " + "and so it goes on " * 20)
        assert [word for word in ("12B", "Baker", "London", "NW1") if word in text] == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("iban de89370400440532013000 please", "iban {} please"),
        ("pay to gb82west12345698765432", "pay to {}"),
        ("ip 2001:db8::1 ok", "ip {} ok"),
        ("de:ad:be:ef:ca:fe is down", "{} is down"),
        ("id 110bcd25-a55d-453a-8046-1297901ea002 failed", "id {} failed"),
    ],
)
def test_identifiers_by_their_form_whatever_a_model_says(crf, line, text):
    assert masked(crf, line) == text.format("[IDENTIFIER]")


def test_a_name_in_signs_for_letters(crf):
    for name in ("Anna", "Ⓐⓝⓝⓐ", "🅰🅽🅽🅰", "𝐀𝐧𝐧𝐚", "Ａｎｎａ", "🇦🇳🇳🇦"):
        assert masked(crf, f"we met {name} Smith here") == "we met [PERSON] [PERSON] here"
