import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import CorpusError
from tasks.labelled_text.generated_corpus import part_of
from tasks.labelled_text.settings import LABEL_CLASSES
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.labelled_text.template import Slot, Template, parse_template, read_templates, write_templates

KINDS = ("CITY", "FIRST_NAME", "PERSON")


def parsed(line):
    return parse_template(line, KINDS)


def test_text_slots_numbers_and_modifiers():
    assert parsed("Hi {FIRST_NAME:1|lower}, from {CITY}.").pieces == (
        "Hi ",
        Slot("FIRST_NAME", 1, ("lower",)),
        ", from ",
        Slot("CITY"),
        ".",
    )


def test_escapes():
    assert parsed(r"{{a}}\n\\n \# b").pieces == ("{a}\n\\n # b",)


@given(st.text(min_size=1).filter(str.strip))
def test_any_text_survives_as_a_literal(text):
    assert parsed(str(Template((text,)))).pieces == (text,)


@given(text=st.text(alphabet="# {}\\ab\r\n", min_size=1).filter(str.strip))
def test_a_written_file_is_read_back(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("templates") / "t.txt"
    template = Template((text, Slot("CITY", 2, ("upper", "words=3"))))
    write_templates(file, [template])
    assert read_templates(file, KINDS) == [template]


def test_bad_templates_say_what_is_wrong():
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


def test_a_file_names_all_its_bad_lines(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("# a comment\n\nHello {CITY}\n{TOWN}\n#hashtag\n{CITY\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"2 bad: line 4: unknown .*; line 6: expected"):
        read_templates(file, KINDS)
    file.write_text("# only a comment\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="no template"):
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


def test_every_label_of_a_slot_has_a_class():
    from tasks.corpora.masked_text import CLASSES

    assert {*SLOT_LABELS.values()} - {None} == set(LABEL_CLASSES)
    assert set(LABEL_CLASSES.values()) <= set(CLASSES)


def test_the_page_on_templates_names_every_kind_with_its_label():
    from tasks.labelled_text.generate_labelled import SHIPPED

    page = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for name, label in SLOT_LABELS.items():
        assert f"| `{name}` | {label or 'none'} | {LABEL_CLASSES.get(label, '')} |" in page
