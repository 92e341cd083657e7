import pytest
from handmade_experiment import FEW, make_experiment

from tasks.parameters.parameter_file import read_parameters
from tasks.records.cells import expected_cells, recognised_cells
from tasks.results.summary.summary_document import document
from tasks.results.summary.summary_rows import summary_rows


def rows_of(folder):
    parameters = read_parameters(folder / "params.yaml")
    results = folder / "results"
    return summary_rows(
        expected_cells(parameters.compare),
        results / "reports",
        results / "scores",
        parameters.evaluation,
        recognised=recognised_cells(parameters.compare),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_experiment(tmp_path_factory.mktemp("speech"), speech_datasets=["chat"], **FEW)


@pytest.fixture(scope="module")
def rows(folder):
    return {row["method"]: row for row in rows_of(folder)}


def test_the_recogniser_alone_has_a_row_of_word_errors_only(rows):
    alone = rows["no_language_model"]
    assert (alone["wer"], alone["perplexity"], alone["signature"]) == (0.18, None, None)
    assert (alone["lm_weight"], alone["insertion_bonus"]) == (None, None)
    assert alone["wer_difference_to_no_language_model"] is None
    assert alone["command"] == "dvc repro recognise_alone@chat-no_language_model"


def test_each_cell_has_its_rate_and_its_differences(rows):
    top_k = rows["top_k"]
    assert (top_k["wer"], top_k["wer_ci"]) == (0.14, pytest.approx([0.13, 0.15]))
    assert (top_k["substitutions"], top_k["utterances"], top_k["reference_words"]) == (140, 50, 1000)
    # 140 errors against 180, 150 and 120 on 1,000 words.
    for reference, difference in (("no_language_model", -0.04), ("pretrained", -0.01), ("oracle", 0.02)):
        assert top_k[f"wer_difference_to_{reference}"] == pytest.approx(difference)
        low, high = top_k[f"wer_difference_to_{reference}_ci"]
        assert low <= difference <= high
    assert top_k["wer_masked"] == pytest.approx(0.28)
    assert top_k["synthetic_speech"] is True


def test_seeds_are_put_together(tmp_path):
    folder = make_experiment(tmp_path, speech_datasets=["chat"], seeds=[1, 2], **FEW)
    together = next(row for row in rows_of(folder) if row["method"] == "top_k")["over_seeds"]
    # 140 and 141 errors, Oracle 120 and 121, pretrained 150 for both.
    assert together["wer"] == together["wer_mean"] == pytest.approx(0.1405)
    assert together["wer_difference_to_oracle"] == pytest.approx(0.02)
    assert together["wer_difference_to_pretrained"] == pytest.approx(-0.0095)


def test_the_table_says_that_the_speech_is_synthetic(rows):
    text = document(list(rows.values()))
    table = text.partition("### Word error rate in per cent, synthetic speech")[2].partition("###")[0]
    assert "| No language model | 18.0 [17.0, 19.0]" in table
    assert "| Oracle | 12.0 [11.0, 13.0]" in table
    # The recogniser alone has no line in the tables of perplexities.
    assert text.count("No language model") == 2


def test_rows_of_lists_of_another_recogniser(tmp_path):
    found = rows_of(make_experiment(tmp_path, rescored_datasets=["chat"], seeds=[1, 2], **FEW))
    alone = next(row for row in found if row["method"] == "no_language_model")
    assert alone["command"] == "dvc repro rescore_alone@chat-no_language_model"
    assert (alone["wer"], alone["wer_insertion_bonus_alone"], alone["wer_best_of_lists"]) == (0.18, 0.175, 0.1)
    assert {row["synthetic_speech"] for row in found} == {False}
    top_k = next(row for row in found if row["method"] == "top_k")
    # 140 errors in 1,000 words.
    assert top_k["wer_difference_to_insertion_bonus_alone"] == pytest.approx(-0.035)
    assert top_k["best_first_share"] == 0.4
    text = document(found)
    assert "### Word error rate in per cent, recorded speech" in text
    assert "an insertion bonus alone gives 17.5%, the best hypothesis of every list 10.0%; 40.0% of the lists" in text
