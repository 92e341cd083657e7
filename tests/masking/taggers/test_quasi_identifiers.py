import pytest

from tasks.masking.combination import EntityTagger
from tasks.settings.checks import check_settings


@pytest.fixture(scope="module")
def technique():
    settings = {"kind": "entity_tagger", "tagger": {"kind": "quasi_identifiers"}, "spelled_numbers": "mask"}
    return check_settings(EntityTagger, settings, "masking").build(None, 1)


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("She owed approximately EUR 1,470,000 to him.", "approximately EUR 1,470,000"),
        ("He paid 100,000 Polish zlotys (PLN) in cash.", "100,000 Polish zlotys PLN"),
        ("It cost 3 million pounds, or $20.", "3 million pounds 20"),
        ("He was 48 years old, after ten years and a half of it.", "48 years old ten years"),
        ("Twenty-four hours later forty % had left.", "Twenty four hours"),
        ("The pharmacists and a civil engineer met.", "pharmacists civil engineer"),
        ("Room 12 of 5/48, 40% full.", "12 5 48 40"),
        ("It was a fine year for the two of them.", ""),
        ("May I have one of those?", ""),
    ],
)
def test_amounts_durations_figures_and_occupations(technique, line, masked):
    ((_, findings),) = technique.findings([line])
    words = " ".join(line[one.start : one.end] for one in findings)
    assert words.replace("-", " ").replace("/", " ") == masked.replace("-", " ").replace("/", " ")


def test_each_word_has_the_class_of_its_kind(technique):
    ((_, findings),) = technique.findings(["A dentist got $5 in 2 weeks from 3."])
    assert [one.label for one in findings] == ["MISCELLANEOUS", "MONEY", "DATE", "DATE", "NUMBER"]
