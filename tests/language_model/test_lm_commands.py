"""The commands as a user runs them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pretrained_folder import SMALL, perplexity, write
from stage_commands import make_vocabulary, settings

from tasks.cli import main
from tasks.language_model.evaluation.sentence_scores import read_scores

GENERIC = ["the cat sat on the mat", "a dog and a cat", "the dog sat", "on the mat a dog sat"] * 30
PRIVATE = ["alice saw the cat", "bob sat on the dog", "the cat saw bob"] * 40


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with generic.txt, vocabulary.txt and a model folder pretrained."""
    folder = tmp_path_factory.mktemp("pretrained")
    text = write(folder / "generic.txt", GENERIC)
    vocabulary = str(folder / "vocabulary.txt")
    make_vocabulary(text, vocabulary, "size=100")
    command = ["pretrain", "--vocabulary", vocabulary, "--input", text, "--valid", text, *SMALL]
    report = ["--report", str(folder / "pretrained.json"), "--output", str(folder / "pretrained")]
    assert main([*command, *settings("pretraining.epochs=2", "pretraining.batch_tokens=64"), *report]) == 0
    return folder


def adapt(pretrained: Path, text: str, output: Path, *options: str) -> int:
    model = str(pretrained / "pretrained")
    return main(["adapt", "--model", model, "--input", text, "--output", str(output), "--threads", "1", *options])


def test_what_needs_no_torch_imports_none(tmp_path):
    code = "import sys; from tasks.cli import main; status = main(); sys.exit(status or 'torch' in sys.modules)"
    counts = write(tmp_path / "counts.tsv", ["the\t2", "cat\t1", "dog\t1"])
    options = ["--word-counts", counts, "--output", str(tmp_path / "vocabulary.txt"), "--set", "minimum_count=1"]
    finished = subprocess.run([sys.executable, "-c", code, "vocabulary", *options], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").splitlines()[-3:] == ["the", "cat", "dog"]
    code = "import sys; import tasks.language_model.evaluation.bootstrap; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_adaptation_lowers_the_perplexity_of_its_text_and_no_message_holds_a_word_of_it(pretrained, tmp_path, capsys):
    text = write(tmp_path / "text.txt", PRIVATE)
    options = settings("adaptation.epochs=4", "adaptation.batch_tokens=64", "adaptation.learning_rate=0.01")
    assert adapt(pretrained, text, tmp_path / "private", *options, "--report", str(tmp_path / "adapt.json")) == 0
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "private" / "model.safetensors").stat().st_mode & 0o777 == 0o600
    perplexities = []
    for model in (pretrained / "pretrained", tmp_path / "private"):
        values = perplexity(model, text, "--scores", str(tmp_path / "scores.tsv"))
        perplexities.append(values["perplexity"])
        read, signature = read_scores(tmp_path / "scores.tsv")
        assert signature == values["signature"]
        assert np.exp(-read.log_probability.sum() / read.targets.sum()) == pytest.approx(values["perplexity"])
        assert values["perplexity_ci"][0] < values["perplexity"] < values["perplexity_ci"][1]
        assert values["words"] == 13 * 40
        assert values["oov_rate"] == pytest.approx(5 / 13)  # alice, saw, bob, saw, bob
    assert perplexities[1] < 0.5 * perplexities[0]
    shown = capsys.readouterr()
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "text.txt"]
    assert b"alice" not in b"".join(written)
    assert "alice" not in shown.out + shown.err


def test_an_empty_text_leaves_the_earlier_model(pretrained, tmp_path, capsys):
    output = tmp_path / "model"
    assert adapt(pretrained, write(tmp_path / "text.txt", PRIVATE), output) == 0
    before = (output / "model.safetensors").read_bytes()
    for lines, message in (([], "is empty"), (["", "!"], "holds no word in 2 lines")):
        assert adapt(pretrained, write(tmp_path / "empty.txt", lines), output) == 1
        assert message in capsys.readouterr().err
    assert (output / "model.safetensors").read_bytes() == before
