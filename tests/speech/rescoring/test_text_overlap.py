"""Overlap of training text with test references, by hand."""

import pytest

from tasks.errors import SpeechError
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.word_errors.references import check_overlap, measure_overlap

REFERENCES = ["Yes!", "one two three four five six seven eight nine", "", "no such thing here"]


def test_counts(tmp_path):
    train = tmp_path / "train.txt"
    # The second reference's first stretch of eight words stands across a line end; its second one nowhere.
    train.write_text("yes\nzero one two three\nfour FIVE six seven, eight ten\nno such thing\n", encoding="utf-8")
    overlap = measure_overlap(REFERENCES, [train])
    assert overlap == {
        "references": 3,
        "shared_sentences": 1,
        "shared_sentence_share": 1 / 3,
        "eight_grams": 2,
        "shared_8_grams": 1,
        "shared_8_gram_share": 0.5,
    }
    check_overlap(overlap, RescoringSettings())
    check_overlap(overlap, RescoringSettings(maximum_shared_8_grams=0.5, maximum_shared_sentences=0.4))
    with pytest.raises(SpeechError, match=r"50.00% of the test 8-grams stand in the training text"):
        check_overlap(overlap, RescoringSettings(maximum_shared_8_grams=0.49))
    with pytest.raises(SpeechError, match=r"33.33% of the test references"):
        check_overlap(overlap, RescoringSettings(maximum_shared_sentences=0.0))


def test_stretches_do_not_reach_across_files(tmp_path):
    for name, line in (("a.txt", "one two three four"), ("b.txt", "five six seven eight nine")):
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    assert measure_overlap(REFERENCES, [tmp_path / "a.txt", tmp_path / "b.txt"])["shared_8_grams"] == 0
    assert measure_overlap(["yes"], [tmp_path / "a.txt"])["shared_8_gram_share"] is None  # too short for a stretch
