"""Filling with what comes with palimpsest: no filler, no word counts, no tuning text, no network."""

import pytest

import palimpsest
from tasks.corpora.words import words_of
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.settings import SHIPPED_FILLER
from tasks.model_source import locate_model

LINES = ["We went to [MASK] in May.", "It is a [MASK], you know."]


@pytest.mark.parametrize("method", ["top_k", "log_linear", "unigram", "surrogate"])
def test_every_method_fills_with_what_ships(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    first, second = palimpsest.fill(LINES, method)
    assert first.startswith("We went to ")
    assert first.endswith(" in May.")
    assert len(words_of(first)) == 6
    assert second.startswith(("It is a ", "It is an "))


def test_the_shipped_filler_knows_words_and_is_small():
    model = MaskedLanguageModel.load(SHIPPED_FILLER)
    pieces = model.encode([("Paris is the capital of ", "."), ("The cat sat on the ", " .")])
    windows = [model.frame.windows(line, [line.index(model.mask_entry)])[0] for line in pieces]
    best = model.logits(windows).topk(20, dim=1).indices
    assert "france" in model.tokenizer.convert_ids_to_tokens(best[0].tolist())
    update = f"{locate_model(SHIPPED_FILLER)}/update.safetensors"
    with open(update, "rb") as stream:
        assert len(stream.read()) < 15_000_000
