"""What hides words from patterns and models: taggers see plain signs, and the masks are those of the raw line."""

import pytest

from tasks.masking.taggers.entity_tagger import TaggedEntities
from tasks.masking.technique import MaskingTally


@pytest.fixture
def masked(shipped):
    def mask(kind, line):
        technique = TaggedEntities(shipped(kind))
        ((text, _),) = technique.mask([line], "class", MaskingTally(), with_spans=False)
        return text

    return mask


@pytest.mark.parametrize(
    ("kind", "line", "text"),
    [
        ("presidio", "his card: 4111\u00a01111\u202f1111\u20071111, ok",
            "his card: [IDENTIFIER]\u00a0[IDENTIFIER]\u202f[IDENTIFIER]\u2007[IDENTIFIER], ok"),
        ("presidio", "his card: 4111\u20111111\u20111111\u20111111, ok", "his card: [IDENTIFIER], ok"),
        ("presidio", "his card: 4111\u200b1111\u200b1111\u200b1111, ok", "his card: [IDENTIFIER], ok"),
        ("presidio", "his card: ４１１１１１１１１１１１１１１１, ok", "his card: [IDENTIFIER], ok"),
        ("presidio", "😀 my ip is A099::09C0:876A:130B \u2066yes\u2069", "😀 my ip is [IDENTIFIER] \u2066yes\u2069"),
        # presidio's own recogniser checks version and variant of a UUID.
        *(("presidio", f"my key deadbeef-cafe-{version}ace-feed-deadbeefcafe is out", "my key [IDENTIFIER] is out")
            for version in "0158f"),
        *(("presidio", line, line) for line in
            ("5@3 euros, a @ home", "1748503543012 please check this :)", "use std::vector here")),
        # By their form, whatever a model says.
        ("crf", "iban de89370400440532013000 please", "iban [IDENTIFIER] please"),
        ("crf", "id 110bcd25-a55d-453a-8046-1297901ea002 failed", "id [IDENTIFIER] failed"),
        # Names in signs for letters.
        *(("crf", f"we met {name} Smith here", "we met [PERSON] [PERSON] here") for name in
            ("Anna", "Ⓐⓝⓝⓐ", "🅰🅽🅽🅰", "𝐀𝐧𝐧𝐚", "Ａｎｎａ", "🇦🇳🇳🇦")),
    ],
)  # fmt: skip
def test_private_words_in_other_signs_are_masked(masked, kind, line, text):
    assert masked(kind, line) == text


@pytest.mark.parametrize(
    "address",
    [
        "anna.k@corp.local", "anna@intranet", "tom@db01.lan", "max@firma.example", "ann@example.nosuchsuffix",
        "lena.brandt＠gmx.de", "alice\u200b.novak@\u200bexample.com",
    ],
)  # fmt: skip
def test_every_address_is_a_contact(masked, address):
    assert masked("presidio", f"write to {address}, please") == "write to [CONTACT], please"


def test_a_time_stamp_is_no_card(shipped):
    lines = [f"the number {stamp}" for stamp in ("1748503543012", "1748503543000016", "1748503543012000007")]
    assert "CREDIT_CARD" not in {span.label for _, spans in shipped("presidio").tag(lines) for span in spans}


def test_an_address_round_the_border_of_a_window(masked):
    address = "12B Baker Street, Flat 7, London, NW1 6XE, United Kingdom"
    for before in range(880, 1000, 8):
        words = ("nothing to see " * 80)[:before].rpartition(" ")[0]
        text = masked("presidio", f"{words} {address}, " + "and so it goes on " * 20)
        assert [word for word in ("12B", "Baker", "London", "NW1") if word in text] == []
