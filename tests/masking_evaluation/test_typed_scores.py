import pytest
from judging import judged

from tasks.masking_evaluation.levels import confusion, per_type, typed_scores

LINES = (
    "<PER:*Ann/PERSON* *Lee/LOCATION*> in <LOC:*New/LOCATION* York>",
    "<thing:*Zug/PERSON*> *and/PERSON* <LOC:*Bonn/MASK*>",
)


def test_recall_of_each_label_whatever_the_class():
    found = per_type(judged(*LINES))
    assert {label: (row["class"], row["token_recall"], row["span_recall"]) for label, row in found.items()} == {
        "LOC": ("LOCATION", pytest.approx(2 / 3), 0.5),
        "PER": ("PERSON", 1.0, 1.0),
        "thing": (None, 1.0, 1.0),
    }
    assert (found["LOC"]["words"], found["LOC"]["spans"]) == (3, 2)


def test_typed_scores_need_the_right_class():
    scores = typed_scores(judged(*LINES))
    # With a class: Ann Lee New York Bonn. Masked with a class: Ann Lee New and (Zug's label asks for none).
    # Right: Ann, New.
    assert (scores["recall"], scores["precision"]) == (2 / 5, 2 / 4)
    person = scores["per_class"]["PERSON"]
    assert (person["gold_words"], person["masked_words"], person["right_words"]) == (2, 2, 1)
    place = scores["per_class"]["LOCATION"]
    assert (place["gold_words"], place["masked_words"], place["right_words"]) == (3, 2, 1)
    assert scores["gold_words_without_class"] == 1
    assert scores["masked_words_without_class"] == 1


def test_confusion_counts_every_private_and_every_masked_word():
    assert confusion(judged(*LINES)) == {
        "(not private)": {"PERSON": 1},
        "LOC": {"(not masked)": 1, "LOCATION": 1, "MASK": 1},
        "PER": {"LOCATION": 1, "PERSON": 1},
        "thing": {"PERSON": 1},
    }


def test_a_technique_without_classes_has_no_typed_precision():
    scores = typed_scores(judged("<PER:*Ann*>"))
    assert (scores["recall"], scores["precision"], scores["f2"]) == (0.0, None, 0.0)
