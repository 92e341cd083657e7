import pytest

from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.labelled_text.variants import joined, lower_cased, spaced, unpunctuated, upper_cased


def line(text, *values):
    spans, position = [], 0
    for value in values:
        start = text.index(value, position)
        spans.append(LabelledSpan(start, start + len(value), "PERSON"))
        position = start + len(value)
    return LabelledLine(text, tuple(spans), 1, "t")


def values(changed):
    return [changed.text[span.start : span.end] for span in changed.spans]


def test_small_letters_and_capitals_may_change_the_length():
    changed = lower_cased(line("Hi İbrahim, Zoë left.", "İbrahim", "Zoë"))
    assert changed.text == "hi i̇brahim, zoë left."
    assert values(changed) == ["i̇brahim", "zoë"]
    changed = upper_cased(line("Strauß met Zoë", "Strauß", "Zoë"))
    assert values(changed) == ["STRAUSS", "ZOË"]


@pytest.mark.parametrize(
    ("text", "value", "result"),
    [
        ("Ada left.", "Ada", "Ada left"),
        ("Is it Ada?!", "Ada", "Is it Ada"),
        ("I like Wham!", "Wham!", "I like Wham!"),
        ("from D. Ada", "Ada", "from D. Ada"),
        ("...", None, "..."),
    ],
)
def test_the_final_mark_goes_unless_it_belongs_to_a_value(text, value, result):
    changed = unpunctuated(line(text, *([value] if value else [])))
    assert changed.text == result
    assert values(changed) == ([value] if value else [])


@pytest.mark.parametrize(
    ("text", "value", "result", "value_then"),
    [
        ("Ben's here, isn't he?", "Ben", "Ben 's here , is n't he ?", "Ben"),
        ("He (Ada) left.", "Ada", "He ( Ada ) left .", "Ada"),
        ("at Ben's Bar, now.", "Ben's Bar", "at Ben 's Bar , now .", "Ben 's Bar"),
        ("it costs $5 today", "$5", "it costs $ 5 today", "$ 5"),
        ("at 10:30 on a.b.com/x", "a.b.com/x", "at 10:30 on a.b.com/x", "a.b.com/x"),
    ],
)
def test_spaces_around_punctuation_never_stand_at_the_edge_of_a_span(text, value, result, value_then):
    changed = spaced(line(text, value))
    assert changed.text == result
    assert values(changed) == [value_then]


def test_two_sentences_on_one_line_keep_their_spans():
    both = joined(line("Ada left.", "Ada"), line("So did Ben.", "Ben"))
    assert both.text == "Ada left. So did Ben."
    assert values(both) == ["Ada", "Ben"]
    assert both.template == "t+t"
