"""Every number here is counted by hand."""

from fractions import Fraction

import pytest
from judging import judged

from tasks.masking_evaluation.judged_line import f2, rates
from tasks.masking_evaluation.levels import (
    document_scores,
    entity_scores,
    over_masking,
    scoped_token_scores,
    span_scores,
    token_scores,
)

LINES = (
    # Two of three private words masked, and "went" too many.
    "<PER:*Ann* Lee> *went* to <LOC:*Bonn*>",
    # Wholly found, nothing too many.
    "<PER:*Bob*> slept",
    # Nothing private, one word too many of five.
    "we had *rather* good tea",
    # Private, nothing masked.
    "ask <PER:Wu>",
    # Nothing private, nothing masked.
    "fine",
)


def numbers(scores):
    return scores["recall"], scores["precision"], scores["f2"]


def fraction(value):
    return pytest.approx(float(Fraction(value)))


def test_f2_by_hand():
    # 5 * 1/2 * 1 / (4 * 1/2 + 1) = 2.5 / 3
    assert f2(1.0, 0.5) == fraction("5/6")
    # The other way round recall is the worse one: 5 * 1 * 1/2 / (4 + 1/2) = 2.5 / 4.5
    assert f2(0.5, 1.0) == fraction("5/9")
    assert f2(1.0, 1.0) == 1


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 0, 0), (None, None, None)),  # nothing private, nothing masked
        ((0, 0, 0, 7), (None, 0.0, None)),  # nothing private, something masked
        ((0, 4, 0, 0), (0.0, None, 0.0)),  # nothing masked: no precision, but F2 is 0 whatever it were
        ((0, 4, 0, 3), (0.0, 0.0, 0.0)),
    ],
)
def test_what_is_undefined_is_none(counts, expected):
    assert tuple(rates(*counts).values()) == expected


def test_token_level():
    scores = token_scores(judged(*LINES))
    # Private: Ann Lee Bonn Bob Wu. Masked: Ann went Bonn Bob rather. Both: Ann Bonn Bob.
    assert (scores["gold_words"], scores["masked_words"], scores["right_words"]) == (5, 5, 3)
    assert numbers(scores) == (0.6, 0.6, pytest.approx(0.6))


def test_span_level():
    scores = span_scores(judged(*LINES))
    # Spans: "Ann Lee" half, Bonn and Bob whole, Wu not. Runs: "Ann", "went", "Bonn", "Bob", "rather".
    assert (scores["gold_spans"], scores["found_spans"], scores["partly_found_spans"]) == (4, 2, 3)
    assert (scores["masked_runs"], scores["right_runs"]) == (5, 3)
    assert numbers(scores) == (0.5, 0.6, fraction("15/29"))  # 5 * .6 * .5 / (4 * .6 + .5)
    assert scores["partial_recall"] == 0.75


def test_a_run_beyond_the_span_is_right_in_part_only():
    scores = span_scores(judged("call *dear* <PER:*Ann*> *soon*, <PER:*Bob*>"))
    assert (scores["masked_runs"], scores["right_runs"], scores["partly_right_runs"]) == (2, 1, 2)
    assert (scores["recall"], scores["precision"], scores["partial_precision"]) == (1.0, 0.5, 1.0)


def test_an_entity_is_protected_only_if_every_mention_is():
    line = "<PER:*Ann*> met <PER:ANN> and <PER:*Bob*> in <LOC:*Ann*>"
    scores = entity_scores(judged(line))
    # Entities: person ann (two mentions, one missed), person bob, place ann.
    assert (scores["entities"], scores["protected_entities"], scores["mentions"]) == (3, 2, 4)
    assert scores["recall"] == fraction("2/3")
    # Distinct masked runs: ann (always private), bob.
    assert (scores["distinct_masked_runs"], scores["right_distinct_masked_runs"]) == (2, 2)


def test_entities_belong_to_documents():
    lines = ("<PER:*Ann*>", "<PER:Ann>")
    assert entity_scores(judged(*lines))["recall"] == 0.5
    assert entity_scores(judged(*lines), whole_corpus=True)["recall"] == 0
    assert entity_scores(judged(*lines, documents=["a", "a"]))["recall"] == 0
    assert entity_scores(judged(*lines, documents=["a", "a"]))["entities"] == 1


def test_a_masked_run_is_right_only_if_it_always_is():
    scores = entity_scores(judged("<PER:*May*> came in *may*"))
    assert (scores["distinct_masked_runs"], scores["precision"], scores["recall"]) == (1, 0, 1)


def test_document_level():
    scores = document_scores(judged(*LINES))
    # With private words: lines 1, 2, 4; wholly masked: 2. With masked words: 1, 2, 3; nothing too many: 2.
    assert (scores["documents"], scores["private_documents"], scores["masked_documents"]) == (5, 3, 3)
    assert numbers(scores) == (fraction("1/3"), fraction("1/3"), fraction("1/3"))


def test_lines_of_one_document_are_judged_together():
    scores = document_scores(judged(*LINES, documents=["a", "a", "b", "b", "b"]))
    # a: Lee missed. b: Wu missed. Both have words too many.
    assert (scores["documents"], scores["private_documents"], scores["masked_documents"]) == (2, 2, 2)
    assert numbers(scores) == (0.0, 0.0, 0.0)


def test_over_masking_counts_lines_without_private_words_alone():
    assert over_masking(judged(*LINES)) == {"masked_share": fraction("1/6"), "lines": 2, "words": 6, "masked_words": 1}
    assert over_masking(judged(LINES[0]))["masked_share"] is None


def test_scope_leaves_out_classes_that_the_gold_does_not_annotate_unless_they_protect():
    lines = judged("<PER:*Ann/DATE* *Lee/PERSON*> came *today/DATE* *again/MASK* *soon/PERSON*")
    assert token_scores(lines)["precision"] == fraction("2/5")
    scores = scoped_token_scores(lines, ["DATE"])
    # "today" is left out; "Ann" is protected, though by a class out of scope.
    assert (scores["recall"], scores["precision"]) == (1.0, 0.5)
    assert (scores["masked_words"], scores["words_out_of_scope"]) == (4, 1)
