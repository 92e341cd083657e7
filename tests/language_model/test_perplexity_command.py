"""``palimpsest perplexity`` as a command that works alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.cli import main
from tasks.language_model.evaluation.sentence_scores import read_scores
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.vocabulary import Vocabulary

TEXT = "a b c\n\nB d unheard\nc d-a\n"


@pytest.fixture
def folder(tmp_path: Path, small_model: Callable[..., TransformerLanguageModel], vocabulary: Vocabulary) -> Path:
    """A model, a text, its sidecar and word counts."""
    save_model(tmp_path / "model", small_model(seed=3), vocabulary)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "counts.tsv").write_text("a\t9\nb\t8\nc\t3\nd\t2\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, *options: str) -> int:
    return main(
        ["perplexity", "--model", str(folder / "model"), "--threads", "1", "--set", "bootstrap_samples=100", *options]
    )


def mask(folder: Path) -> None:
    """Everything but a and b is masked: c, d and unheard, and d of d-a."""
    words = folder / "safe.txt"
    words.write_text("a\nb\n", encoding="utf-8")
    options = ["--technique", "allow_list", "--set", f"path={words}", "--input", str(folder / "text.txt")]
    outputs = ["--output", str(folder / "masked.txt"), "--sidecar", str(folder / "sidecars" / "allow_list.jsonl")]
    assert main(["mask", *options, *outputs]) == 0
    assert (folder / "masked.txt").read_text(encoding="utf-8") == ("a b [MASK]\n\nB [MASK] [MASK]\n[MASK] [MASK]-a\n")


def test_all_numbers_as_json_and_by_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mask(folder)
    capsys.readouterr()
    options = ["--sidecar", str(folder / "sidecars"), "--word-counts", str(folder / "counts.tsv"), "--report", "-"]
    outputs = ["--scores", str(folder / "scores.tsv"), "--set", "frequency_classes=[1, 3]"]
    assert run(folder, "--input", str(folder / "text.txt"), *options, *outputs) == 0
    values = json.loads(capsys.readouterr().out)["measured"]
    assert (values["words"], values["sentences"], values["empty_lines"]) == (9, 3, 1)
    masked = values["masked_words"]["allow_list"]
    assert (masked["words"], masked["unknown_words"], masked["rest_targets_known"]) == (5, 1, 7)
    assert {name: group["targets"] for name, group in values["by_frequency"].items()} == {
        "rank 1-1": 2,
        "rank 2-3": 4,
        "rank over 3": 2,
        "unknown": 1,
        "sentence end": 3,
    }
    scores, signature = read_scores(folder / "scores.tsv")
    assert signature == values["signature"]
    assert scores.of("masked:allow_list").targets.tolist() == [1, 2, 2]
    assert scores.of("masked_known:allow_list").targets.tolist() == [1, 1, 2]
    assert scores.log_probability.sum() == pytest.approx(values["log_probability"], abs=1e-5)
    written = (folder / "scores.tsv").read_text(encoding="utf-8")
    assert not any(word in written.replace("known", "").split() for word in ("unheard", "a", "b", "c", "d"))


def test_the_line_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mask(folder)
    capsys.readouterr()
    assert run(folder, "--input", str(folder / "text.txt"), "--sidecar", str(folder / "sidecars")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("perplexity ")
    assert "9 words, 11.11% unknown, 3 sentences" in lines[0]
    assert lines[1].startswith("  allow_list: 5 masked words (55.6%), those known ")


def test_the_markers_rule_is_in_the_signature_and_in_the_number(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for rule in ("in_vocabulary", "renormalised"):
        assert run(folder, "--input", str(folder / "text.txt"), "--set", f"markers={rule}", "--report", "-") == 0
        found[rule] = json.loads(capsys.readouterr().out)["measured"]
        assert found[rule]["signature"].endswith(f"|markers={rule}")
    assert found["renormalised"]["perplexity"] == found["in_vocabulary"]["perplexity_without_markers"]
    assert found["renormalised"]["perplexity"] < found["in_vocabulary"]["perplexity"]
