"""Rows and findings of a data set with n-best lists of another recogniser."""

from dataclasses import replace

import pytest
from handmade_experiment import FEW, make_experiment

from tasks.cli import main
from tasks.results.findings.findings_page import speech_parts
from tasks.results.findings.findings_speech import Rate, spoken_datasets
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
    assert alone["command"] == "dvc repro rescore@chat-no_language_model"
    assert (alone["wer"], alone["wer_insertion_bonus_alone"], alone["wer_best_of_lists"]) == (0.18, 0.175, 0.1)
    assert {row["synthetic_speech"] for row in rows} == {False}
    top_k = next(row for row in rows if row["method"] == "top_k")
    # 140 errors in 1,000 words.
    assert top_k["wer_difference_to_insertion_bonus_alone"] == pytest.approx(-0.035)
    assert (top_k["best_first_share"], top_k["source_weight"]) == (0.4, None)


def test_the_summary_says_what_the_lists_allow(rows):
    text = document(rows)
    assert "### Word error rate in per cent, recorded speech" in text
    assert "an insertion bonus alone gives 17.5%, the best hypothesis of every list 10.0%; 40.0% of the lists" in text


def test_fused_data_sets_have_none_of_them(tmp_path, monkeypatch):
    monkeypatch.chdir(make_experiment(tmp_path, speech_datasets=["chat"], **FEW))
    assert main(["summarise"]) == 0
    rows = read_summary("results/summary.json")
    assert {row["wer_best_of_lists"] for row in rows} == {None}
    (found,) = spoken_datasets(rows)
    assert (found.kind, found.room) == ("synthetic speech", None)
    assert "best hypothesis" not in "\n".join(speech_parts([found]))


def test_the_findings_have_the_papers_table(rows):
    (found,) = spoken_datasets(rows)
    assert [(system.label, system.technique, system.seeds) for system in found.systems] == [
        ("No language model", None, 1),
        ("Pretrained", None, 1),
        ("Oracle", None, 2),
        ("Baseline1", "allow_list", 2),
        ("Top-K", "allow_list", 2),
    ]
    page = "\n\n".join(speech_parts([found]))
    assert "### chat, recorded speech" in page
    assert "| No language model | 18.00 [17.00, 19.00] ▲ |" in page
    assert "| No language model, insertion bonus | 17.50 [16.50, 18.50] |" in page
    assert "| *best hypothesis of every list* | 10.00 |" in page
    # Oracle has 120 and 121 errors of 1,000, the pretrained model 150: -2.95 points; the way to the best is 8 points.
    assert "**Adaptation moves the rate**: Oracle against the pretrained model **-2.95 [" in page
    assert "an insertion bonus alone 6%, the pretrained model at weight 0.4 38%, Oracle at weight 0.4 74%." in page
    assert "no source model is named" in page


def test_where_nothing_moves_it_is_said(rows):
    (found,) = spoken_datasets(rows)
    systems = tuple(
        replace(system, differences={**system.differences, "pretrained": Rate(-0.0005, -0.002, 0.001)})
        if system.label == "Oracle"
        else system
        for system in found.systems
    )
    still = replace(found, systems=systems)
    assert still.adaptation_moves is False
    page = "\n".join(speech_parts([still]))
    assert "**Adaptation moves nothing that can be told from 0**" in page
    assert "by -0.05 [-0.20, +0.10] points, so" in page
    assert "as good as any of its list for 40.0% of the utterances" in page


def test_the_page_has_word_error_rates(folder, rows, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["findings", "--output", "findings.md"]) == 0
    text = (folder / "findings.md").read_text(encoding="utf-8")
    assert text.index("## Word error rates") < text.index("## Beyond the paper")
