import random

import pytest

from tasks.labelled_text.filling import fill_template
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, write_labelled
from tasks.labelled_text.learning import learn_templates
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.labelled_text.template import read_templates, write_templates
from tasks.made_up.made_up import MadeUp


def labelled(text, *spans):
    found = [LabelledSpan(text.index(value), text.index(value) + len(value), label) for value, label in spans]
    return LabelledLine(text, tuple(found), 1)


@pytest.fixture
def learn(tmp_path):
    def learned(*lines, label_map=None):
        write_labelled(tmp_path / "gold.jsonl", lines)
        return learn_templates(tmp_path / "gold.jsonl", label_map).templates

    return learned


@pytest.mark.parametrize(
    ("value", "label", "text", "template"),
    [
        ("Joe Miller", "PER", "ask Joe Miller", "ask {FULL_NAME|words=2}"),
        ("michael", "person", "ask michael", "ask {FIRST_NAME|words=1,lower}"),
        ("Michael", "person", "ask Michael if he can", "ask {FIRST_NAME_MALE|words=1} if he can"),
        ("Ackermann", "person", "ask Ackermann", "ask {LAST_NAME|words=1}"),
        ("@joe_9", "person", "ask @joe_9", "ask {USER_NAME}"),
        ("Germany", "LOC", "in Germany", "in {COUNTRY}"),
        ("TEXAS", "LOC", "in TEXAS", "in {STATE|upper}"),
        ("Lutz Airport", "LOC", "at Lutz Airport", "at {FACILITY}"),
        ("Monday", "DATE_TIME", "on Monday", "on {WEEKDAY}"),
        ("Ulm University", "ORG", "at Ulm University", "at {UNIVERSITY}"),
        ("#BigFish", "creative-work", "see #BigFish", "see {WORK|hashtag}"),
        ("12 Elm Street", "STREET_ADDRESS", "at 12 Elm Street", "at {STREET_ADDRESS}"),
    ],
)
def test_a_span_becomes_a_slot_of_its_kind_and_form(learn, value, label, text, template):
    assert list(map(str, learn(labelled(text, (value, label))))) == [template]


def test_private_values_that_nobody_labelled_are_replaced_by_their_form(learn):
    text = (
        "RT @jo: mail a.b@c.org or see http://x.io/y and www.z.de, call (713) 555-0188 or 12345678901, "
        "from 10.1.2.3, card 4111 1111 1111 1111, on 12/16/2001 10:15:00, $1,234,567 for 7 of 2024 {x}"
    )
    assert str(learn(LabelledLine(text, (), 1))[0]) == (
        "RT {USER_NAME}: mail {EMAIL_ADDRESS} or see {URL} and {URL} call {PHONE_NUMBER} or {ACCOUNT_NUMBER}, "
        "from {IP_ADDRESS}, card {CREDIT_CARD}, on 12/16/2001 10:15:00, $1,234,567 for 7 of 2024 {{x}}"
    )


def test_equal_values_of_a_line_become_one_thing_and_of_overlapping_spans_the_longest_is_the_slot(learn):
    (template,) = learn(LabelledLine("Ada met Ada", (LabelledSpan(0, 3, "PER"), LabelledSpan(8, 11, "PER")), 1))
    first, second = fill_template(template, MadeUp(), random.Random(1)).text.split(" met ")
    assert first == second
    (template,) = learn(labelled("at Ada & Sons", ("Ada", "PER"), ("Ada & Sons", "ORG")))
    assert [slot.kind for slot in template.slots] == ["ORGANISATION"]


def test_a_repeated_template_is_one_and_what_is_written_is_private_and_read_back(learn, tmp_path):
    lines = [labelled(f"# Hi {{{name}}}\n\\o/", (name, "PER")) for name in ("Joe", "Michael")]
    templates = learn(*lines, LabelledLine(" ", (), 1))
    assert len(templates) == 1
    write_templates(tmp_path / "learned.txt", templates)
    assert (tmp_path / "learned.txt").stat().st_mode & 0o777 == 0o600
    assert read_templates(tmp_path / "learned.txt", SLOT_LABELS) == templates
