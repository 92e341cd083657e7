"""Rows of a data set with n-best lists of another recogniser."""

import pytest
from handmade_experiment import make_experiment

from tasks.cli import main
from tasks.results.summary.summary_document import document
from tasks.results.summary.summary_file import read_summary


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_experiment(
        tmp_path_factory.mktemp("lists"), rescored_datasets=["chat"], techniques=["allow_list"], seeds=[1, 2],
        baselines=["baseline1"], fills=[{"filler": "minilm", "methods": ["top_k"]}],
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["summarise"]) == 0
    return read_summary(folder / "results" / "summary.json")


def test_the_columns_of_lists(rows):
    alone = next(row for row in rows if row["method"] == "no_language_model")
    assert alone["command"] == "dvc repro rescore_alone@chat-no_language_model"
    assert (alone["wer"], alone["wer_insertion_bonus_alone"], alone["wer_best_of_lists"]) == (0.18, 0.175, 0.1)
    assert {row["synthetic_speech"] for row in rows} == {False}
    top_k = next(row for row in rows if row["method"] == "top_k")
    # 140 errors in 1,000 words.
    assert top_k["wer_difference_to_insertion_bonus_alone"] == pytest.approx(-0.035)
    assert top_k["best_first_share"] == 0.4


def test_the_summary_says_what_the_lists_allow(rows):
    text = document(rows)
    assert "### Word error rate in per cent, recorded speech" in text
    assert "an insertion bonus alone gives 17.5%, the best hypothesis of every list 10.0%; 40.0% of the lists" in text
