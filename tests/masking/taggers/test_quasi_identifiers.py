import re

import pytest

from tasks.masking.combination import EntityTagger
from tasks.settings.checks import check_settings


@pytest.fixture(scope="module")
def technique():
    settings = {"kind": "entity_tagger", "tagger": {"kind": "quasi_identifiers"}, "spelled_numbers": "mask"}
    return check_settings(EntityTagger, settings, "masking").build(None, 1)


@pytest.mark.parametrize(
    "line",
    [
        "She owed {approximately} {EUR} {1,470,000} to him.",
        "He paid {100,000} {Polish} {zlotys} ({PLN}) in cash.",
        "It cost {3} {million} {pounds}, or ${20}.",
        "He was {48} {years} {old}, after {ten} {years} and a half of it. May I have one of those?",
        "{Twenty}-{four} {hours} later forty % had left.",
        "The {pharmacists} and a {civil} {engineer} met.",
        "Room {12} of {5/48}, {40}% full.",
        "It was a fine year for the two of them.",
    ],
)
def test_amounts_durations_figures_and_occupations(technique, line):
    ((text, findings),) = technique.findings([line.replace("{", "").replace("}", "")])
    assert [text[one.start : one.end] for one in findings] == re.findall(r"{([^}]*)}", line)


def test_each_word_has_the_class_of_its_kind(technique):
    ((_, findings),) = technique.findings(["A dentist got $5 in 2 weeks from 3."])
    assert [one.label for one in findings] == ["MISCELLANEOUS", "MONEY", "DATE", "DATE", "NUMBER"]
