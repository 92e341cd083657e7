"""Templates as text, their parts, and the sentences that are filled from them with variants of their form."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpora.masked_text import CLASSES
from tasks.labelled_text.filling import fill_template
from tasks.labelled_text.generate_labelled import SHIPPED
from tasks.labelled_text.generated_corpus import part_of
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.labelled_text.settings import LABEL_CLASSES
from tasks.labelled_text.slots import SLOT_LABELS, Sentence
from tasks.labelled_text.template import Slot, Template, parse_template, read_templates, write_templates
from tasks.labelled_text.variants import joined, lower_cased, spaced, unpunctuated, upper_cased
from tasks.made_up.made_up import MadeUp

KINDS = ("CITY", "FIRST_NAME", "PERSON")


def parsed(line):
    return parse_template(line, KINDS)


@given(text=st.one_of(st.text(alphabet="# {}\\ab\r\n", min_size=1), st.text(min_size=1)).filter(str.strip))
def test_a_written_file_is_read_back(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "t.txt"
    template = Template((text, Slot("CITY", 2, ("upper", "words=3"))))
    write_templates(file, [template])
    assert read_templates(file, KINDS) == [template]


def test_near_duplicates_are_in_one_part():
    lines = ["Hi {FIRST_NAME}, see you at 10!", "hi {PERSON:1} see you at 12", "HI {FIRST_NAME} {CITY}: see you at?"]
    assert len({part_of(parsed(line), 0.3, 0.3) for line in lines}) == 1
    assert parsed("Hi, see you at 10!").identity != parsed(lines[0]).identity


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


def test_slots_of_one_number_are_one_person_of_one_gender(made_up):
    template = (
        "{FULL_NAME:1}, {FIRST_NAME:1}, {LAST_NAME:1} hurt {PRONOUN_REFLEXIVE:1}, {PRONOUN_POSSESSIVE:1} {RELATIVE:1} "
        "said. {PRONOUN_SUBJECT:1}!"
    )
    female = "mother mom mum sister daughter aunt grandma niece wife girlfriend".split()
    seen = set()
    for line in filled(template, made_up, 60):
        full, first, last, itself, own, relative, subject = re.fullmatch(
            r"(.+), (.+), (.+) hurt (\w+), (\w+) ([\w-]+) said\. (\w+)!", line.text
        ).groups()
        assert full == f"{first} {last}"
        assert (itself, own, subject) in {("herself", "her", "She"), ("himself", "his", "He")}
        assert (relative.removesuffix("-in-law") in female) == (subject == "She")
        seen.add(subject)
    assert len(seen) == 2
    # A kind that asks for a gender decides for all slots of its number.
    lines = filled("said {PRONOUN_SUBJECT:1} of {FIRST_NAME_MALE:1}", made_up, 30)
    assert {line.text[:8] for line in lines} == {"said he "}


# Variants ---------------------------------------------------------------------------------------------------------


def of_persons(marked):
    """A line with the persons that stand in angles."""
    text, spans = "", []
    for number, piece in enumerate(re.split("[<>]", marked)):
        if number % 2:
            spans.append(LabelledSpan(len(text), len(text) + len(piece), "PERSON"))
        text += piece
    return LabelledLine(text, tuple(spans), 1, "t")


@pytest.mark.parametrize(
    ("variant", "line", "result"),
    [
        (lower_cased, "Hi <İbrahim>, <Zoë> left.", "hi <i̇brahim>, <zoë> left."),
        (upper_cased, "<Strauß> met <Zoë>", "<STRAUSS> MET <ZOË>"),
        (unpunctuated, "Is it <Ada>?!", "Is it <Ada>"),
        (unpunctuated, "I like <Wham!>", "I like <Wham!>"),
        (unpunctuated, "...", "..."),
        (spaced, "<Ben>'s here, isn't he?", "<Ben> 's here , is n't he ?"),
        (spaced, "at <Ben's Bar>, (now)", "at <Ben 's Bar> , ( now )"),
        (spaced, "it costs <$5> today", "it costs <$ 5> today"),
        (spaced, "at 10:30 on <a.b.com/x>", "at 10:30 on <a.b.com/x>"),
    ],
)
def test_spans_move_with_the_text_of_a_variant(variant, line, result):
    assert variant(of_persons(line)) == of_persons(result)


def test_two_sentences_on_one_line_keep_their_spans():
    both = joined(of_persons("<Ada> left."), of_persons("So did <Ben>."))
    assert (both.text, values(both), both.template) == ("Ada left. So did Ben.", ["Ada", "Ben"], "t+t")
