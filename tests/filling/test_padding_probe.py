"""A fill does not depend on what else is in its batch: models that mix padding into a sentence are refused."""

import pytest
import torch
from stage_commands import settings
from tiny_families import FAMILIES, random_model, tokenizer_of
from tiny_masked_models import save
from transformers import (
    ConvBertConfig,
    ConvBertForMaskedLM,
    FNetConfig,
    FNetForMaskedLM,
    NystromformerConfig,
    NystromformerForMaskedLM,
    YosoConfig,
    YosoForMaskedLM,
)

from tasks.cli import main
from tasks.errors import ModelError
from tasks.filling.fillers.preparation import train_head
from tasks.filling.fillers.settings import HeadTraining
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

MIXING = {
    "convbert": (ConvBertForMaskedLM, ConvBertConfig, {"embedding_size": 16}),
    "fnet": (FNetForMaskedLM, FNetConfig, {}),
    "nystromformer": (NystromformerForMaskedLM, NystromformerConfig, {}),
    "yoso": (YosoForMaskedLM, YosoConfig, {}),
}


def mixing_model(name):
    architecture, configuration, options = MIXING[name]
    tokenizer = tokenizer_of("bert")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    model = architecture(
        configuration(
            vocab_size=len(tokenizer), max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
            initializer_range=0.8, **sizes, **options,
        )
    )  # fmt: skip
    return MaskedLanguageModel(model.eval(), tokenizer, name)


def test_a_model_that_mixes_padding_is_refused_to_fill_and_to_train(tmp_path, capsys):
    for name in MIXING:
        model = mixing_model(name)
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


def test_the_probe_is_two_forward_passes_of_a_few_pieces(monkeypatch):
    asked = []
    logits = MaskedLanguageModel.logits

    def noted(self, windows):
        asked.append([len(window.pieces) for window in windows])
        return logits(self, windows)

    monkeypatch.setattr(MaskedLanguageModel, "logits", noted)
    for family in FAMILIES:
        asked.clear()
        MaskedLanguageModel(random_model(family), tokenizer_of(family), family).prepared()
        assert asked == [[7], [7, 13]]


def test_a_model_that_draws_at_random_is_refused():
    model = random_model("bert")
    model.bert.embeddings.register_forward_hook(lambda _module, _arguments, hidden: hidden + torch.randn_like(hidden))
    with pytest.raises(ModelError, match=r"'noisy' \(BertForMaskedLM\) draws at random and scores the same sentence"):
        MaskedLanguageModel(model, tokenizer_of("bert"), "noisy").prepared()


def test_a_model_that_cannot_score_a_sentence_is_refused():
    model = random_model("bert")

    def fail(*_):
        raise KeyError("relations")

    model.bert.embeddings.register_forward_hook(fail)
    with pytest.raises(ModelError, match=r"'odd' .* cannot score a sentence: 'relations'; mend its config.json"):
        MaskedLanguageModel(model, tokenizer_of("bert"), "odd").prepared()
