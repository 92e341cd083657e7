import socket

import pytest

from tasks.corpora.masked_text import CLASSES
from tasks.masking.settings import PresidioTagger
from tasks.masking.taggers.entity_classes import ENTITY_CLASSES
from tasks.masking.taggers.presidio_tagger import PresidioModel

OBAMA = "Barack Obama was born in Hawaii on 4 August 1961."
CARD = "My card is 4012888888881881 and my IBAN is GB82WEST12345698765432."
CONTACTS = "Write to ann@example.com, call 212-555-0199, or see https://www.example.org/a?b=c now."
CARDS = {("4012888888881881", "CREDIT_CARD"), ("GB82WEST12345698765432", "IBAN_CODE")}
FOUND = [
    (OBAMA, {("Barack Obama", "PERSON"), ("Hawaii", "LOCATION"), ("4 August 1961", "DATE_TIME")}),
    (CARD, CARDS),
    (CONTACTS, {("ann@example.com", "EMAIL_ADDRESS"), ("212-555-0199", "PHONE_NUMBER"),
        ("https://www.example.org/a?b=c", "URL")}),
    ("My social security number is 536-22-8726, my passport number is 912803456.",
        {("536-22-8726", "US_SSN"), ("912803456", "US_PASSPORT")}),
    ("The server 192.168.0.12 is down; the bitcoin address is 16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ",
        {("192.168.0.12", "IP_ADDRESS"), ("16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ", "CRYPTO")}),
    ("Tosh lives at Maneezi 75, then.", {("Maneezi 75", "STREET_ADDRESS")}),
]  # fmt: skip


def loaded(**settings):
    return PresidioModel(PresidioTagger(kind="presidio", **settings), threads=1)


@pytest.fixture(scope="module")
def model():
    return loaded(batch_size=3)


def found(model, line):
    ((returned, spans),) = list(model.tag([line]))
    assert returned == line
    return {(line[span.start : span.end], span.label) for span in spans}


@pytest.mark.parametrize(("line", "expected"), FOUND)
def test_what_is_found(model, line, expected):
    assert expected <= found(model, line)


@pytest.mark.parametrize(
    "line",
    [
        "Nothing to see here.", "", "this...is what you do crazy things...it's fine", "blood instead of oil.and gears",
        "It was next week, or a few years ago.", "This is Maneezi 75, then.",
    ],
)  # fmt: skip
def test_what_is_left(model, line):
    assert found(model, line) == set()


def test_a_checksum_a_context_word_and_a_minimum_score_decide(model):
    assert {ENTITY_CLASSES[name] for name in model.entity_types} <= set(CLASSES)
    assert "CREDIT_CARD" not in {label for _, label in found(model, "the number 4012888888881882")}
    assert "US_PASSPORT" not in {label for _, label in found(model, "The total is 912803456 grains.")}
    sure = loaded(minimum_score=0.9)
    assert found(sure, CARD) == CARDS
    assert found(sure, OBAMA) == set()


def test_nothing_is_fetched_and_nothing_is_written(monkeypatch, tmp_path):
    def refused(*_arguments, **_options):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    for variable in ("HOME", "XDG_CACHE_HOME", "TLDEXTRACT_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    fresh = loaded()
    assert ("ann@example.com", "EMAIL_ADDRESS") in found(fresh, CONTACTS)
    assert ("ann@example.nosuchsuffix", "EMAIL_ADDRESS") in found(fresh, "Write to ann@example.nosuchsuffix now.")
    assert list(tmp_path.iterdir()) == []
