"""What is wrong with a masked LM ends in one line that names the thing, the value and the remedy."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from fill_command import refused, write
from huggingface_hub import constants
from tiny_families import MIXING, random_model, tokenizer_of
from tiny_masked_models import random_bert, save, word_piece_tokenizer
from transformers import BertModel, PreTrainedTokenizerFast

from tasks.errors import ModelError
from tasks.filling.fillers.preparation import train_head
from tasks.filling.fillers.settings import HeadTraining
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

WORD_PIECES = word_piece_tokenizer()


def change(file, **values):
    path = Path("filler", file)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def lose_the_mask_token():
    backend = WORD_PIECES.backend_tokenizer
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]").save_pretrained("filler")


def hold_nan():
    model = random_bert(WORD_PIECES)
    torch.nn.init.constant_(model.cls.predictions.bias, float("nan"))
    model.save_pretrained("filler")


@pytest.mark.parametrize(
    ("damage", "messages"),
    [
        (lose_the_mask_token, ["has no mask token", "take one such as 'bert-base-uncased'"]),
        (partial(change, "config.json", is_decoder=True), ["is_decoder in config.json"]),
        (lambda: BertModel(random_bert(WORD_PIECES).config).save_pretrained("filler"),
            ["has no masked-LM head", "'palimpsest train-filler' (train_head)"]),
        (hold_nan, ["its weights are damaged: fetch the model again"]),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_used_is_one_line(folder, bert, capsys, damage, messages):
    shutil.copytree(bert, "filler")
    damage()
    write("text.txt", ["tom [MASK] mat"])
    error = refused(capsys, "fill", input="text.txt", method="top_1", filler="filler")
    assert all(message in error for message in messages)
    assert " mat" not in error


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="neither a folder nor reachable on the hub"):
        MaskedLanguageModel.load("no-such-owner/no-such-model")
    assert constants.HF_HUB_OFFLINE


def test_a_model_that_mixes_padding_is_refused_to_fill_and_to_train(folder, capsys):
    for name in MIXING:
        model = MaskedLanguageModel(random_model(name), tokenizer_of("bert"), name)
        with pytest.raises(ModelError, match=rf"'{name}' .* mixes padding into a sentence, .*'bert-base-uncased'"):
            model.prepared()
    with pytest.raises(ModelError, match="mixes padding"):
        train_head(model.model, model.tokenizer, [], ["the cat sat"], HeadTraining(steps=4), name=name)
    write("text.txt", (f"the cat {number}" for number in range(40)))
    save(model.model, model.tokenizer, folder / "base")
    files = {"base": "base", "input": "text.txt"}
    assert "mixes padding" in refused(capsys, "tune-filler", "minimum_sentences=10", "steps=4", **files)
