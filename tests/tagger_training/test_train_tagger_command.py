import json

import pytest
from labelled_sentences import NAMES, TOWNS, labelled, sentences, write_folder
from stage_commands import settings

from tasks.cli import main


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "labelled", sentences(NAMES, TOWNS), sentences(["Zbigniew"], ["Wanne"]))


def test_a_crf_is_trained_tested_and_used(folder, tmp_path, capsys):
    report = tmp_path / "report.json"
    options = [*settings("kind=crf", "embeddings=null", "iterations=60"), "--report", str(report)]
    assert main(["train-tagger", "--labelled", str(folder), "--output", str(tmp_path / "crf"), *options]) == 0
    measured = json.loads(report.read_text())["measured"]
    assert (measured["lines"], measured["labelled_tokens"]) == (80, 40)
    # Two of the four test sentences hold one private word each, and both are found.
    assert (measured["test_recall"], measured["test_precision"], measured["test_f2"]) == (1.0, 1.0, 1.0)
    assert "Zbigniew" not in report.read_text()
    text = tmp_path / "text.txt"
    text.write_text("my name is Wladyslaw and that is all\n")
    capsys.readouterr()
    options = [*settings(f"tagger.model={tmp_path}/crf", "markers.style=class"), "--input", str(text), "--output", "-"]
    assert main(["mask", "--technique", "crf", *options]) == 0
    assert capsys.readouterr().out == "my name is [PERSON] and that is all\n"


def test_a_held_out_part_without_anything_private_leaves_the_rates_undefined(tmp_path, capsys):
    folder = write_folder(tmp_path / "labelled", sentences(NAMES, TOWNS), [labelled("that is all we know about it")])
    report = tmp_path / "report.json"
    options = [*settings("kind=crf", "embeddings=null", "iterations=30"), "--report", str(report)]
    assert main(["train-tagger", "--labelled", str(folder), "--output", str(tmp_path / "crf"), *options]) == 0
    assert "recall undefined" in capsys.readouterr().err
    measured = json.loads(report.read_text())["measured"]
    assert (measured["test_lines"], measured["test_recall"], measured["test_f2"]) == (1, None, None)
