import pytest
from judging import judged

from tasks.masking_evaluation.levels import token_intervals, token_scores


def test_equal_documents_have_intervals_of_no_width():
    lines = judged(*["<PER:*Ann* Lee> *went*"] * 5)
    # In every draw recall is 1/2, precision 1/2 and so F2.
    assert token_intervals(lines, 100, 0.95, 1) == {
        "recall_ci": [0.5, 0.5],
        "precision_ci": [0.5, 0.5],
        "f2_ci": [0.5, 0.5],
    }


def test_two_documents_have_three_possible_draws():
    # Draws: twice the found one (recall 1), one of each (1/2), twice the missed one (0): 1/4, 1/2, 1/4 of the draws.
    lines = judged("<PER:*Ann*>", "<PER:Bob>")
    intervals = token_intervals(lines, 1000, 0.95, 1)
    assert intervals["recall_ci"] == [0.0, 1.0]
    # Precision is undefined where nothing is masked, and 1 in all other draws.
    assert intervals["precision_ci"] == [1.0, 1.0]
    assert token_intervals(lines, 1000, 0.51, 1)["recall_ci"] == [pytest.approx(0.25, abs=0.25), 1.0]


def test_lines_of_one_document_are_drawn_together():
    lines = judged(*["<PER:*Ann*>", "<PER:Bob>"] * 2, documents=["a", "a", "b", "b"])
    assert token_intervals(lines, 200, 0.95, 1)["recall_ci"] == [0.5, 0.5]


def test_the_interval_holds_the_number_and_depends_on_the_seed_alone():
    lines = judged(*["<PER:*Ann*> *went*", "<PER:Bob> slept", "fine *tea*"] * 20)
    f2 = token_scores(lines)["f2"]
    first = token_intervals(lines, 300, 0.95, 7)
    assert first["f2_ci"][0] < f2 < first["f2_ci"][1]
    assert token_intervals(lines, 300, 0.95, 7) == first
    assert token_intervals(lines, 300, 0.95, 8) != first


def test_undefined_intervals_are_none():
    assert token_intervals(judged("<PER:*Ann*>"), 100, 0.95, 1) == dict.fromkeys(("recall_ci", "precision_ci", "f2_ci"))
    nothing_private = token_intervals(judged("*one* two", "three"), 100, 0.95, 1)
    assert (nothing_private["recall_ci"], nothing_private["f2_ci"]) == (None, None)
    assert nothing_private["precision_ci"] == [0.0, 0.0]
