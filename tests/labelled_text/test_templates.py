"""Templates as text, their parts, and the sentences that are filled from them with variants of their form."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpora.masked_text import CLASSES
from tasks.errors import CorpusError
from tasks.labelled_text.filling import fill_template
from tasks.labelled_text.generate_labelled import SHIPPED
from tasks.labelled_text.generated_corpus import part_of
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.labelled_text.settings import LABEL_CLASSES
from tasks.labelled_text.slots import SLOT_LABELS, Sentence
from tasks.labelled_text.template import Slot, Template, parse_template, read_templates, write_templates
from tasks.labelled_text.variants import joined, lower_cased, spaced, unpunctuated, upper_cased
from tasks.made_up.articles import article_for
from tasks.made_up.made_up import MadeUp
from tasks.made_up.pools import shipped_values

KINDS = ("CITY", "FIRST_NAME", "PERSON")


def parsed(line):
    return parse_template(line, KINDS)


def test_text_slots_numbers_modifiers_and_escapes():
    city, name = Slot("CITY"), Slot("FIRST_NAME", 1, ("lower",))
    assert parsed("Hi {FIRST_NAME:1|lower}, from {CITY}.").pieces == ("Hi ", name, ", from ", city, ".")
    assert parsed(r"{{a}}\n\\n \# b").pieces == ("{a}\n\\n # b",)


@given(text=st.one_of(st.text(alphabet="# {}\\ab\r\n", min_size=1), st.text(min_size=1)).filter(str.strip))
def test_a_written_file_is_read_back(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "t.txt"
    template = Template((text, Slot("CITY", 2, ("upper", "words=3"))))
    write_templates(file, [template])
    assert read_templates(file, KINDS) == [template]


def test_bad_templates_say_what_is_wrong(tmp_path):
    for line, reason in [
        ("a {CITTY}", r"unknown kind of slot 'CITTY' \(did you mean 'CITY'\?\)"),
        ("a {city}", "a slot is"),
        ("a {CITY", "expected '}'"),
        ("a } b", "Single '}'"),
        ("a {CITY|bold}", "unknown modifier 'bold'; allowed: lower, upper, hashtag"),
        ("a \\q", "a single backslash"),
    ]:
        with pytest.raises(ValueError, match=reason):
            parsed(line)
    file = tmp_path / "t.txt"
    for text, reason in [
        ("# a comment\n\nHello {CITY}\n{TOWN}\n#hashtag\n{CITY\n", r"2 bad: line 4: unknown .*; line 6: expected"),
        ("# only a comment\n", "no template"),
    ]:
        file.write_text(text, encoding="utf-8")
        with pytest.raises(CorpusError, match=reason):
            read_templates(file, KINDS)


def test_near_duplicates_are_in_one_part():
    lines = ["Hi {FIRST_NAME}, see you at 10!", "hi {PERSON:1} see you at 12", "HI {FIRST_NAME} {CITY}: see you at?"]
    assert len({parsed(line).identity for line in lines}) == 1
    assert parsed("Hi, see you at 10!").identity != parsed(lines[0]).identity
    assert len({part_of(parsed(line), 0.3, 0.3) for line in lines}) == 1


def test_parts_get_about_their_share_of_the_templates():
    parts = [part_of(Template((f"template {word}",)), 0.1, 0.2) for word in map(chr, range(0x4E00, 0x4E00 + 4000))]
    # Three standard deviations of a binomial share of 4,000 are below 0.02.
    assert parts.count("valid") / 4000 == pytest.approx(0.1, abs=0.02)
    assert parts.count("test") / 4000 == pytest.approx(0.2, abs=0.02)


def test_every_label_of_a_slot_has_a_class_and_the_page_on_templates_names_them():
    assert {*SLOT_LABELS.values()} - {None} == set(LABEL_CLASSES)
    assert set(LABEL_CLASSES.values()) <= set(CLASSES)
    page = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for name, label in SLOT_LABELS.items():
        assert f"| `{name}` | {label or 'none'} | {LABEL_CLASSES.get(label, '')} |" in page


# Filled templates -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_up():
    return MadeUp("train")


@pytest.fixture(scope="module")
def shipped():
    return [template for path in sorted(Path(SHIPPED).glob("*.txt")) for template in read_templates(path, SLOT_LABELS)]


def filled(line, made_up, seeds):
    """The sentences of a template."""
    template = parse_template(line, SLOT_LABELS)
    return [fill_template(template, made_up, random.Random(seed)) for seed in range(seeds)]


def values(line):
    return [line.text[span.start : span.end] for span in line.spans]


def test_shipped_templates_are_many_a_third_has_no_slot_and_they_use_every_kind(shipped):
    assert len(shipped) >= 400
    assert sum(not template.slots for template in shipped) >= len(shipped) / 3
    assert len({template.identity for template in shipped}) >= 400
    unused = set(SLOT_LABELS) - {slot.kind for template in shipped for slot in template.slots}
    # What only learned templates need.
    assert unused <= {"LAST_NAME", "WEB_HOST", "PERSON_FEMALE", "PERSON_MALE", "ORGANISATION"}


def test_spans_are_exactly_the_values_that_were_filled_in(shipped, made_up, monkeypatch):
    made = []

    def recorded(sentence, slot):
        value = f"<{slot.kind}~{len(made)}>"
        if SLOT_LABELS[slot.kind]:
            made.append(value)
        return value

    monkeypatch.setattr(Sentence, "value", recorded)
    for template in shipped:
        made.clear()
        line = fill_template(template, made_up, random.Random(1))
        assert values(line) == made
        assert [span.label for span in line.spans] == list(filter(None, (SLOT_LABELS[s.kind] for s in template.slots)))


def test_shipped_templates_fill_without_double_articles_and_spaces(shipped, made_up):
    for template in shipped:
        line = fill_template(template, made_up, random.Random(str(template)))
        assert not re.search(r"\b(?:the the|a the|the a)\b|  |[{}]", line.text, re.IGNORECASE), line.text
        assert all(value == value.strip() and value for value in values(line))


def test_one_number_is_one_person(made_up):
    for full, first, last in map(values, filled("{FULL_NAME:1}, {FIRST_NAME:1}, {LAST_NAME:1}", made_up, 50)):
        assert full == f"{first} {last}"


def test_gender_agrees_within_a_sentence(made_up):
    relatives = {
        True: "mother mom mum sister daughter aunt grandma niece wife girlfriend".split(),
        False: "father dad brother son uncle grandpa nephew husband boyfriend".split(),
    }
    template = (
        "{FIRST_NAME:1} hurt {PRONOUN_REFLEXIVE:1}, {PRONOUN_POSSESSIVE:1} {RELATIVE:1} said. {PRONOUN_SUBJECT:1}!"
    )
    seen = set()
    for line in filled(template, made_up, 60):
        self, own, relative, she = re.fullmatch(r".+ hurt (\w+), (\w+) ([\w-]+) said\. (\w+)!", line.text).groups()
        female = self == "herself"
        assert (own, she) == (("her", "She") if female else ("his", "He"))
        assert relative.removesuffix("-in-law") in relatives[female]
        seen.add(female)
    assert seen == {True, False}
    # A kind that asks for a gender decides for all slots of its number.
    assert all(
        "said he " in line.text for line in filled("said {PRONOUN_SUBJECT:1} of {FIRST_NAME_MALE:1}", made_up, 30)
    )


def test_country_and_its_people_agree(made_up):
    rows = {
        tuple(cell.removeprefix("the ").removesuffix(" citizen") for cell in row)
        for row in shipped_values("nationalities")
    }
    template = "{COUNTRY:1}|{NATIONALITY:1}|{NATIONALITY_PEOPLE:1}|{NATIONALITY_PERSON:1}"
    assert {tuple(values(line)) for line in filled(template, made_up, 80)} <= rows
    assert {("Spain", "Spanish", "Spaniards", "Spaniard"), ("Denmark", "Danish", "Danes", "Dane")} <= rows


def test_articles_of_names_stay_outside_and_are_not_doubled(made_up, monkeypatch):
    monkeypatch.setattr(Sentence, "value", lambda sentence, slot: "the Alps")
    for template, text in {
        "We like {REGION}.": "We like the Alps.",
        "{REGION} are high.": "The Alps are high.",
        "our {REGION}, the {REGION}": "our Alps, the Alps",
    }.items():
        (line,) = filled(template, made_up, 1)
        assert line.text == text
        assert set(values(line)) == {"Alps"}


def test_organisations_with_names_of_people_are_one_span(made_up):
    lines = filled("at {HOSPITAL} and {COMPANY}", made_up, 200)
    assert {tuple(span.label for span in line.spans) for line in lines} == {("ORGANISATION", "ORGANISATION")}
    assert any(re.search(r"^St\. \w+'s Hospital$| & Sons$", value) for line in lines for value in values(line))


def test_a_template_with_an_article_agrees(made_up):
    for line in filled("He is a {NATIONALITY_PERSON} and an {JOB}.", made_up, 60):
        first, second = re.match(r"He is (an?) .+? and (an?) ", line.text).groups()
        assert first == article_for(values(line)[0])
        assert second == article_for(line.text[line.text.index(f" and {second} ") + 6 + len(second) :])


def test_a_slot_holds_the_number_of_words_and_the_form(made_up):
    for seed in range(30):
        sentence = Sentence(made_up, random.Random(seed))
        assert len(sentence.value(Slot("WORK", None, ("words=2",))).removeprefix("the ").split()) == 2
        assert sentence.value(Slot("CITY", None, ("lower",))).islower()
        assert re.fullmatch(r"#\w+", sentence.value(Slot("TEAM", None, ("hashtag",))))


# Variants ---------------------------------------------------------------------------------------------------------


def of_persons(text, *persons):
    """A line with these persons, in order."""
    spans, position = [], 0
    for person in persons:
        start = text.index(person, position)
        position = start + len(person)
        spans.append(LabelledSpan(start, position, "PERSON"))
    return LabelledLine(text, tuple(spans), 1, "t")


@pytest.mark.parametrize(
    ("variant", "text", "persons", "result", "then"),
    [
        (lower_cased, "Hi İbrahim, Zoë left.", ["İbrahim", "Zoë"], "hi i̇brahim, zoë left.", ["i̇brahim", "zoë"]),
        (upper_cased, "Strauß met Zoë", ["Strauß", "Zoë"], "STRAUSS MET ZOË", ["STRAUSS", "ZOË"]),
        (unpunctuated, "Ada left.", ["Ada"], "Ada left", ["Ada"]),
        (unpunctuated, "Is it Ada?!", ["Ada"], "Is it Ada", ["Ada"]),
        (unpunctuated, "I like Wham!", ["Wham!"], "I like Wham!", ["Wham!"]),
        (unpunctuated, "from D. Ada", ["Ada"], "from D. Ada", ["Ada"]),
        (unpunctuated, "...", [], "...", []),
        (spaced, "Ben's here, isn't he?", ["Ben"], "Ben 's here , is n't he ?", ["Ben"]),
        (spaced, "He (Ada) left.", ["Ada"], "He ( Ada ) left .", ["Ada"]),
        (spaced, "at Ben's Bar, now.", ["Ben's Bar"], "at Ben 's Bar , now .", ["Ben 's Bar"]),
        (spaced, "it costs $5 today", ["$5"], "it costs $ 5 today", ["$ 5"]),
        (spaced, "at 10:30 on a.b.com/x", ["a.b.com/x"], "at 10:30 on a.b.com/x", ["a.b.com/x"]),
    ],
)
def test_spans_move_with_the_text_of_a_variant(variant, text, persons, result, then):
    changed = variant(of_persons(text, *persons))
    assert changed.text == result
    assert values(changed) == then


def test_two_sentences_on_one_line_keep_their_spans():
    both = joined(of_persons("Ada left.", "Ada"), of_persons("So did Ben.", "Ben"))
    assert both.text == "Ada left. So did Ben."
    assert values(both) == ["Ada", "Ben"]
    assert both.template == "t+t"
