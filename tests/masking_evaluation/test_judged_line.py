import pytest
from judging import judged, marked

from tasks.errors import ModelError
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.masking.technique import Finding
from tasks.masking_evaluation.judged_line import judge, judged_lines
from tasks.masking_evaluation.label_classes import LabelMapping

NO_OWN = LabelMapping({})


@pytest.mark.parametrize(
    ("text", "spans", "labels", "lengths"),
    [
        # "rk Cit" of "New York City": both words are touched, "New" is not.
        ("New York City is big", [(6, 12, "LOC")], [None, "LOC", "LOC", None, None], [("LOC", 2)]),
        ("Ann, Bob", [(3, 5, "PER")], [None, None], []),
        ("Ann Lee Corp", [(0, 3, "PER"), (0, 12, "ORG")], ["ORG", "ORG", "ORG"], [("ORG", 3), ("PER", 1)]),
    ],
)
def test_a_word_is_private_where_a_span_touches_it_and_of_the_longest_one(text, spans, labels, lengths):
    line = judge(LabelledLine(text, tuple(LabelledSpan(*span) for span in spans), 1), [], NO_OWN)
    assert [span.label if span else None for span in line.gold] == labels
    assert sorted((span.label, len(span.words)) for span in line.spans) == lengths
    assert line.spans_without_words == len(spans) - len(lengths)


def test_labels_that_are_not_private_are_ignored_and_counted():
    (line,) = judged("<TITLE:Dr> <PER:Lee>, <TITLE:Mr> <PER:Wu>", own={"TITLE": None})
    assert [span and span.label for span in line.gold] == [None, "PER", None, "PER"]
    assert line.ignored_spans == {"TITLE": 2}


def test_runs_end_at_words_that_are_not_masked_and_at_punctuation():
    (line,) = judged("*Ann* *Lee*, *Bob* saw *Wu*\t *Li*-*Po*")
    assert line.masked_runs() == [range(0, 2), range(2, 3), range(4, 6), range(6, 7)]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([], "0 lines for 1"),
        ([("Ann Li", [])], "or others"),
        ([("Ann Lee", [Finding(0, 2, "MASK", "test")])], "line 1: techniques mask whole words, each once"),
        ([("Ann Lee", [Finding(0, 3, "MASK", "test")] * 2)], "each once"),
    ],
)
def test_a_technique_that_loses_lines_or_finds_no_words_is_an_error(found, says):
    with pytest.raises(ModelError, match=says) as error:
        list(judged_lines([marked("Ann Lee")[0]], found, NO_OWN))
    assert "Ann" not in str(error.value)
