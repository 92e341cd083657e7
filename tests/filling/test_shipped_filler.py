"""Filling with what comes with palimpsest: no filler, no word counts, no tuning text, no network."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_masked_models import word_piece_tokenizer
from transformers import BertConfig, BertForMaskedLM

import palimpsest
from tasks.corpora.sources.published_frequencies import published_counts
from tasks.corpora.words import words_of
from tasks.errors import ModelError
from tasks.filling.fillers.filler_folder import apply_update, write_update
from tasks.filling.masked_lm import weighing
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


def test_the_shipped_averages_are_of_the_shipped_filler():
    known = json.loads(Path(weighing.__file__).with_name("weighing.json").read_text())["averages"]
    vocabulary = MaskedLanguageModel.load(SHIPPED_FILLER).tokenizer.get_vocab()
    assert known.keys() <= vocabulary.keys()
    assert np.exp(list(known.values())).sum() == pytest.approx(1, abs=0.02)
    found, _ = weighing.shipped_averages(["cat", "no-such-word"])
    assert found.tolist() == [known["cat"], float(np.median(list(known.values())))]


def test_an_update_gives_back_what_was_trained(tmp_path):
    configuration = BertConfig(
        vocab_size=len(word_piece_tokenizer()), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(1)
    base, trained = BertForMaskedLM(configuration), BertForMaskedLM(configuration)
    fresh = [name for name in base.state_dict() if name.startswith("cls.")]
    trained.bert.embeddings.load_state_dict(base.bert.embeddings.state_dict())
    write_update(trained, base, fresh, "package:no/model", tmp_path)
    assert not [name for name in load_file(tmp_path / "update.safetensors") if "word_embeddings" in name]
    apply_update(base, fresh, str(tmp_path))
    pieces = torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        assert torch.allclose(base.eval()(pieces).logits, trained.eval()(pieces).logits, atol=5e-3)
    with pytest.raises(ModelError, match="not an update of its base"):
        apply_update(
            BertForMaskedLM(BertConfig(**{**configuration.to_dict(), "intermediate_size": 8})), fresh, str(tmp_path)
        )


def test_a_folder_that_is_not_there_is_refused_before_libraries_are_loaded(tmp_path):
    (tmp_path / "masked.txt").write_text("a [MASK]\n", encoding="utf-8")
    code = (
        "import sys; from tasks.cli import main; "
        "main(['fill', '--method', 'top_k', '--filler', './filler', '--input', 'masked.txt', '--output', 'out.txt']); "
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert "model folder './filler' does not exist" in done.stderr


def test_the_published_list_has_capitals():
    counts = dict(published_counts())
    assert len(counts) == 100_000
    assert counts["the"] > counts["London"] > 0
    assert {"london", "The"} & counts.keys() == set()
