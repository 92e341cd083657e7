"""What is wrong with a masked LM or its use ends in one line that names the thing, the value and the remedy."""

import json
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from stage_commands import settings
from tiny_families import MIXING, random_model, tokenizer_of
from tiny_masked_models import random_bert, save, word_piece_tokenizer
from transformers import BertModel, PreTrainedTokenizerFast

from tasks.cli import main
from tasks.errors import ModelError
from tasks.filling.fillers.preparation import train_head
from tasks.filling.fillers.settings import HeadTraining
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

WORD_PIECES = word_piece_tokenizer()


def fill(folder, filler, *options, text="tom [MASK] mat\n"):
    (folder / "masked.txt").write_text(text, encoding="utf-8")
    arguments = ["--input", folder / "masked.txt", "--output", folder / "filled.txt", "--filler", filler, *options]
    return main(["fill", *map(str, arguments)])


def refused(folder, filler, capsys, *options, text="tom [MASK] mat\n", method="top_1"):
    """The one line on standard error; there is no output, and nothing of the text."""
    capsys.readouterr()
    assert fill(folder, filler, "--method", method, *options, text=text) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "mat" not in error.replace("format", "").split()
    assert not (folder / "filled.txt").exists()
    return error


@pytest.fixture
def filler(tmp_path):
    return save(random_bert(WORD_PIECES), WORD_PIECES, tmp_path / "tiny")


def change(folder, file, **values):
    path = f"{folder}/{file}"
    with open(path, encoding="utf-8") as stream:
        content = json.load(stream)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({**content, **values}, stream)


def bare(folder):
    """No mask token."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=WORD_PIECES.backend_tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    )
    tokenizer.save_pretrained(folder)


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def no_numbers(folder):
    model = random_bert(WORD_PIECES)
    with torch.no_grad():
        model.cls.predictions.bias[3] = float("nan")
    model.save_pretrained(folder)


@pytest.mark.parametrize(
    ("make", "messages"),
    [
        (bare, ["has no mask token", "take one such as 'bert-base-uncased'"]),
        (lambda folder: change(folder, "config.json", is_decoder=True), ["is_decoder in config.json"]),
        (
            lambda folder: change(folder, "tokenizer_config.json", split_special_tokens=True),
            ["splits the mask token '[MASK]' into pieces", '"split_special_tokens": false'],
        ),
        (
            without("config.json", "model.safetensors", "tokenizer.json"),
            ["lacks config.json, weights (model.safetensors), a tokenizer (tokenizer.json)"],
        ),
        (
            lambda folder: BertModel(random_bert(WORD_PIECES).config).save_pretrained(folder),
            ["has no masked-LM head", "'palimpsest train-filler' (train_head)"],
        ),
        (no_numbers, ["its weights are damaged: fetch the model again"]),
    ],
)
def test_a_model_that_cannot_be_used_is_one_line(tmp_path, filler, capsys, make, messages):
    make(Path(filler))
    error = refused(tmp_path, filler, capsys)
    assert all(message in error for message in messages)


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="neither a folder nor reachable on the hub"):
        MaskedLanguageModel.load("no-such-owner/no-such-model")
    assert constants.HF_HUB_OFFLINE


def test_a_model_that_mixes_padding_is_refused_to_fill_and_to_train(tmp_path, capsys):
    for name in MIXING:
        model = MaskedLanguageModel(random_model(name), tokenizer_of("bert"), name)
        with pytest.raises(ModelError, match=rf"'{name}' .* mixes padding into a sentence, .*'bert-base-uncased'"):
            model.prepared()
        with pytest.raises(ModelError, match="mixes padding"):
            train_head(model.model, model.tokenizer, [], ["the cat sat"], HeadTraining(steps=4), name=name)
    (tmp_path / "masked.txt").write_text("".join(f"the cat {number}\n" for number in range(40)), encoding="utf-8")
    base = save(model.model, model.tokenizer, tmp_path / "base")
    files = ["--base", base, "--input", str(tmp_path / "masked.txt"), "--output", str(tmp_path / "tuned")]
    assert main(["tune-filler", *files, *settings("minimum_sentences=10", "steps=4")]) == 1
    assert "mixes padding" in capsys.readouterr().err
    assert not (tmp_path / "tuned").exists()
