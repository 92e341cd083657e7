import json

from labelled_sentences import LINES, labelled, sentences
from stage_commands import settings

from tasks.cli import main
from tasks.labelled_text.labelled_lines import write_labelled


def train(folder, test):
    """Train a CRF; what was measured on the held-out lines."""
    write_labelled(folder / "train.jsonl", LINES)
    write_labelled(folder / "test.jsonl", test)
    options = [*settings("kind=crf", "embeddings=null", "iterations=60"), "--report", str(folder / "report.json")]
    assert main(["train-tagger", "--labelled", str(folder), "--output", str(folder / "crf"), *options]) == 0
    return json.loads((folder / "report.json").read_text())["measured"]


def test_a_crf_is_trained_tested_and_used(tmp_path, capsys):
    measured = train(tmp_path, sentences("Zbigniew", "Wanne"))
    assert (measured["lines"], measured["labelled_tokens"]) == (80, 40)
    # Two of the four test sentences hold one private word each, and both are found.
    assert (measured["test_recall"], measured["test_precision"], measured["test_f2"]) == (1.0, 1.0, 1.0)
    assert "Zbigniew" not in (tmp_path / "report.json").read_text()
    (tmp_path / "text.txt").write_text("my name is Wladyslaw and that is all\n")
    capsys.readouterr()
    options = [*settings(f"tagger.model={tmp_path}/crf", "markers.style=class"), "--input", str(tmp_path / "text.txt")]
    assert main(["mask", "--technique", "crf", *options, "--output", "-"]) == 0
    assert capsys.readouterr().out == "my name is [PERSON] and that is all\n"


def test_a_held_out_part_without_anything_private_leaves_the_rates_undefined(tmp_path, capsys):
    measured = train(tmp_path, [labelled("that is all we know about it")])
    assert "recall undefined" in capsys.readouterr().err
    assert (measured["test_lines"], measured["test_recall"], measured["test_f2"]) == (1, None, None)
