"""A GPU computes what a processor does: commands run once with the card and once without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_up_words import made_up_words
from stage_commands import make_vocabulary, settings

from tasks.records.stage_report import read_report
from tasks.torch_setup import stand_in_for_torchaudio_extension

stand_in_for_torchaudio_extension()
from tiny_causal_models import causal_tokenizer, random_llama  # noqa: E402 (behind the stand-in)
from tiny_masked_models import random_bert, save, word_piece_tokenizer  # noqa: E402

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parent.parent
DEVICES = ("0", "")


def run(device: str, folder: Path, *command: object) -> dict:
    """What the command measures, run in a new folder; ``device``: the number of a card, or nothing."""
    folder.mkdir()
    words = [sys.executable, "-m", "tasks.cli", *map(str, command), "--report", "report.json"]
    path = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": device, "PYTHONPATH": path}
    finished = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return read_report(folder / "report.json")["measured"]


def test_a_language_model_learns_and_scores_the_same(tmp_path):
    """In rows of several sentences; on the processor a batch has several chunks of the loss."""
    words = made_up_words(2000)
    lines = [" ".join(words[place : place + 7 + place % 5]) for place in range(0, 1988, 2)]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    make_vocabulary(text, tmp_path / "vocabulary.txt", "minimum_count=1")
    options = settings(
        "architecture.layers=2", "architecture.heads=2", "architecture.width=32", "architecture.maximum_tokens=64",
        "architecture.context=packed", "pretraining.epochs=4", "pretraining.batch_tokens=2048",
        "pretraining.precision=float32", "pretraining.dropout=0",
    )  # fmt: skip
    command = ("pretrain", "--input", text, "--valid", text, "--vocabulary", tmp_path / "vocabulary.txt", *options)
    measured = []
    for number, device in enumerate(DEVICES):
        model = tmp_path / f"model{number}"
        curve = run(device, tmp_path / f"pretrain{number}", *command, "--output", model)["curve"]
        scored = run(device, tmp_path / f"score{number}", "perplexity", "--model", model, "--input", text)
        measured.append([*curve, {"perplexity": scored["perplexity"]}])
    for mine, other in zip(*measured, strict=True):
        assert mine == pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize(
    ("make", "pieces"),
    [(random_bert, word_piece_tokenizer), (random_llama, causal_tokenizer)],
    ids=["masked", "causal"],
)
def test_a_filler_writes_the_same(make, pieces, tmp_path):
    model = save(make(pieces()), pieces(), tmp_path / "model")
    masked = tmp_path / "masked.txt"
    masked.write_text("the [MASK] cat sat on [MASK]\nTom [MASK] in the [MASK] house\n" * 40, encoding="utf-8")
    filled = []
    for number, device in enumerate(DEVICES):
        output = tmp_path / f"filled{number}.txt"
        command = ("fill", "--method", "sample", "--filler", model, "--input", masked, "--output", output)
        run(device, tmp_path / f"fill{number}", *command)
        filled.append(output.read_text(encoding="utf-8"))
    assert filled[0] == filled[1]
    assert "[MASK]" not in filled[0]
