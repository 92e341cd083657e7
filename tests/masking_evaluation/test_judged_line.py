import pytest
from judging import judged, marked

from tasks.errors import ModelError
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.masking.technique import Finding
from tasks.masking_evaluation.judged_line import judge, judged_lines
from tasks.masking_evaluation.label_classes import LabelMapping

NO_OWN = LabelMapping({})


def gold_labels(line):
    return [span.label if span else None for span in line.gold]


def test_a_word_is_private_where_a_span_touches_it():
    # The span covers "rk Cit" of "New York City": both words are touched, "New" is not.
    line = LabelledLine("New York City is big", (LabelledSpan(6, 12, "LOC"),), 1)
    assert gold_labels(judge(line, [], NO_OWN)) == [None, "LOC", "LOC", None, None]


def test_a_span_beside_a_word_does_not_touch_it():
    line = LabelledLine("Ann, Bob", (LabelledSpan(3, 5, "PER"),), 1)
    found = judge(line, [], NO_OWN)
    assert gold_labels(found) == [None, None]
    assert found.spans_without_words == 1
    assert found.spans == []


def test_a_word_of_nested_spans_belongs_to_the_longest():
    spans = (LabelledSpan(0, 3, "PER"), LabelledSpan(0, 12, "ORG"))
    line = judge(LabelledLine("Ann Lee Corp", spans, 1), [], NO_OWN)
    assert gold_labels(line) == ["ORG", "ORG", "ORG"]
    assert sorted((span.label, len(span.words)) for span in line.spans) == [("ORG", 3), ("PER", 1)]


def test_labels_that_are_not_private_are_ignored_and_counted():
    (line,) = judged("<TITLE:Dr> <PER:Lee>, <TITLE:Mr> <PER:Wu>", own={"TITLE": None})
    assert gold_labels(line) == [None, "PER", None, "PER"]
    assert line.ignored_spans == {"TITLE": 2}


def test_runs_end_at_words_that_are_not_masked_and_at_punctuation():
    (line,) = judged("*Ann* *Lee*, *Bob* saw *Wu*\t *Li*-*Po*")
    # Words: Ann Lee Bob saw Wu Li Po
    assert line.masked_runs() == [range(0, 2), range(2, 3), range(4, 6), range(6, 7)]


def test_a_finding_that_is_no_word_is_a_defect_of_the_technique():
    line, _ = marked("Ann Lee")
    for findings, says in (
        ([Finding(0, 2, "MASK", "test")], "not a word"),
        ([Finding(0, 3, "MASK", "test"), Finding(0, 3, "MASK", "test")], "masked already"),
    ):
        with pytest.raises(ModelError, match=says):
            judge(line, findings, NO_OWN)


@pytest.mark.parametrize(
    ("found", "says"), [([], "0 lines of 1"), ([("Ann Li", [])], "line 1: the technique gave back another line")]
)
def test_a_technique_that_loses_lines_is_an_error(found, says):
    line, _ = marked("Ann Lee")
    with pytest.raises(ModelError, match=says) as error:
        list(judged_lines([line], found, NO_OWN))
    assert "Ann" not in str(error.value)
