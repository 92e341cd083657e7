import random
import re
from pathlib import Path

import pytest

from tasks.labelled_text.filling import fill_template
from tasks.labelled_text.generate_labelled import SHIPPED
from tasks.labelled_text.slots import SLOT_LABELS, Sentence
from tasks.labelled_text.template import Slot, parse_template, read_templates
from tasks.made_up.articles import article_for
from tasks.made_up.made_up import MadeUp
from tasks.made_up.pools import shipped_values
from tasks.made_up.thing import Thing


@pytest.fixture(scope="module")
def made_up():
    return MadeUp("train")


def filled(line, made_up, seed):
    return fill_template(parse_template(line, SLOT_LABELS), made_up, random.Random(seed))


def values(line):
    return [line.text[span.start : span.end] for span in line.spans]


@pytest.fixture(scope="module")
def shipped():
    return {path: read_templates(path, SLOT_LABELS) for path in sorted(Path(SHIPPED).glob("*.txt"))}


def test_shipped_templates_are_many_and_a_third_has_no_slot(shipped):
    templates = [template for file in shipped.values() for template in file]
    assert len(templates) >= 400
    assert sum(not template.slots for template in templates) >= len(templates) / 3
    assert len({template.identity for template in templates}) >= 400


def test_shipped_templates_use_every_kind_of_slot(shipped):
    used = {slot.kind for file in shipped.values() for template in file for slot in template.slots}
    # What only learned templates need.
    assert set(SLOT_LABELS) - used <= {"LAST_NAME", "WEB_HOST", "PERSON_FEMALE", "PERSON_MALE", "ORGANISATION"}


def test_spans_are_exactly_the_values_that_were_filled_in(shipped, made_up, monkeypatch):
    made = []

    def recorded(sentence, slot):
        value = f"<{slot.kind}~{len(made)}>"
        if SLOT_LABELS[slot.kind]:
            made.append(value)
        return value

    monkeypatch.setattr(Sentence, "value", recorded)
    for file in shipped.values():
        for template in file:
            made.clear()
            line = fill_template(template, made_up, random.Random(1))
            assert values(line) == made
            assert [span.label for span in line.spans] == [
                SLOT_LABELS[slot.kind] for slot in template.slots if SLOT_LABELS[slot.kind]
            ]


def test_shipped_templates_fill_without_double_articles_and_spaces(shipped, made_up):
    for file in shipped.values():
        for template in file:
            for seed in range(3):
                line = fill_template(template, made_up, random.Random(seed))
                assert not re.search(r"\b(?:the the|a the|the a)\b|  |[{}]", line.text, re.IGNORECASE), line.text
                assert all(value == value.strip() and value for value in values(line))


def test_one_number_is_one_person(made_up):
    for seed in range(50):
        full, first, last = values(filled("{FULL_NAME:1}, {FIRST_NAME:1}, {LAST_NAME:1}", made_up, seed))
        assert full == f"{first} {last}"


def test_gender_agrees_within_a_sentence(made_up):
    template = (
        "{FIRST_NAME:1} hurt {PRONOUN_REFLEXIVE:1}, {PRONOUN_POSSESSIVE:1} {RELATIVE:1} said. {PRONOUN_SUBJECT:1} left."
    )
    seen = set()
    for seed in range(60):
        line = filled(template, made_up, seed)
        words = re.fullmatch(r".+ hurt (\w+), (\w+) ([\w-]+) said\. (\w+) left\.", line.text).groups()
        female = words[0] == "herself"
        assert words[1] == ("her" if female else "his")
        assert words[3] == ("She" if female else "He")
        assert words[2].removesuffix("-in-law") in (
            "mother mom mum sister daughter aunt grandma niece wife girlfriend".split()
            if female
            else "father dad brother son uncle grandpa nephew husband boyfriend".split()
        )
        seen.add(female)
    assert seen == {True, False}


def test_a_kind_that_asks_for_a_gender_decides_for_all_slots_of_its_number(made_up):
    for seed in range(30):
        assert "said he " in filled("said {PRONOUN_SUBJECT:1} of {FIRST_NAME_MALE:1}", made_up, seed).text


def test_country_and_its_people_agree(made_up):
    rows = {
        tuple(cell.removeprefix("the ").removesuffix(" citizen") for cell in row)
        for row in shipped_values("nationalities")
    }
    template = "{COUNTRY:1}|{NATIONALITY:1}|{NATIONALITY_PEOPLE:1}|{NATIONALITY_PERSON:1}"
    for seed in range(80):
        assert tuple(values(filled(template, made_up, seed))) in rows
    assert ("Spain", "Spanish", "Spaniards", "Spaniard") in rows
    assert ("Denmark", "Danish", "Danes", "Dane") in rows


def test_articles_of_names_stay_outside_and_are_not_doubled(made_up, monkeypatch):
    monkeypatch.setattr(Sentence, "value", lambda sentence, slot: "the Alps")
    for template, text in {
        "We like {REGION}.": "We like the Alps.",
        "{REGION} are high.": "The Alps are high.",
        "our {REGION}, the {REGION}": "our Alps, the Alps",
    }.items():
        line = filled(template, made_up, 1)
        assert line.text == text
        assert set(values(line)) == {"Alps"}


def test_organisations_with_names_of_people_are_one_span(made_up):
    held = []
    for seed in range(200):
        line = filled("at {HOSPITAL} and {COMPANY}", made_up, seed)
        assert [span.label for span in line.spans] == ["ORGANISATION", "ORGANISATION"]
        held += [value for value in values(line) if re.search(r"^St\. \w+'s Hospital$| & Sons$", value)]
    assert held


@pytest.mark.parametrize(
    ("value", "article"),
    [
        ("Austrian", "an"), ("Dane", "a"), ("European", "a"), ("Ukrainian", "a"), ("Ugandan", "a"), ("Uzbek", "an"),
        ("hour", "an"), ("unit", "a"), ("uncle", "an"), ("Uruguayan", "a"), ("user", "a"), ("MBA", "an"), ("UN", "a"),
        ("FBI", "an"), ("8-year-old", "an"), ("18", "an"), ("11th", "an"), ("1", "a"), ("80", "an"), ("Élysée", "an"),
        ("one", "a"), ("iPhone", "an"), ("undertaker", "an"), ("university", "a"), ("Honest", "an"), ("house", "a"),
    ],
)  # fmt: skip
def test_the_indefinite_article_goes_by_the_sound(value, article):
    assert article_for(value) == article


def test_a_template_with_an_article_agrees(made_up):
    for seed in range(60):
        line = filled("He is a {NATIONALITY_PERSON} and an {JOB}.", made_up, seed)
        first, second = re.match(r"He is (an?) .+? and (an?) ", line.text).groups()
        assert first == article_for(values(line)[0])
        assert second == article_for(line.text[line.text.index(f" and {second} ") + 6 + len(second) :])


def test_a_slot_holds_the_number_of_words_and_the_form(made_up):
    for seed in range(30):
        sentence = Sentence(made_up, random.Random(seed))
        assert len(sentence.value(Slot("WORK", None, ("words=2",))).removeprefix("the ").split()) == 2
        assert sentence.value(Slot("CITY", None, ("lower",))).islower()
        assert re.fullmatch(r"#\w+", sentence.value(Slot("TEAM", None, ("hashtag",))))


def test_check_digits_of_cards_and_accounts_are_right(made_up):
    random_numbers = random.Random(5)
    for _ in range(100):
        digits = list(map(int, filter(str.isdigit, Thing(made_up, random_numbers).make("credit_card"))))
        doubled = [digit * 2 if place % 2 else digit for place, digit in enumerate(reversed(digits))]
        assert sum(number // 10 + number % 10 for number in doubled) % 10 == 0
        account = Thing(made_up, random_numbers).make("iban").replace(" ", "")
        assert int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
