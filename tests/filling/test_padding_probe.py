"""A fill does not depend on what else is in its batch, even where a model mixes padding into a sentence."""

import pytest
import torch
from tiny_families import FAMILIES, random_model, tokenizer_of
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

from tasks.errors import ModelError
from tasks.filling.choices.methods import choice_of
from tasks.filling.kept_words import KeptWords
from tasks.filling.log_linear.candidate_scores import candidate_log_probabilities
from tasks.filling.log_linear.tuning_places import OpenPlace
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.settings import Top1

MIXING = {
    "convbert": (ConvBertForMaskedLM, ConvBertConfig, {"embedding_size": 16}),
    "fnet": (FNetForMaskedLM, FNetConfig, {}),
    "nystromformer": (NystromformerForMaskedLM, NystromformerConfig, {}),
    "yoso": (YosoForMaskedLM, YosoConfig, {}),
}
LINES = [
    "the [MASK] sat",
    "[MASK] likes the dog and the [MASK] likes tom . it is a red cat",
    "cats [MASK]",
    "a [MASK] in paris ran (and ran) . the cat sat on the mat",
    "the [MASK] ran",
]


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
    return MaskedLanguageModel(model.eval(), tokenizer, name).prepared()


def words(model, batch_sentences):
    candidates = candidate_words(model.tokenizer, name="tiny")
    choice = choice_of(Top1(kind="top_1"), KeptWords().off_list(candidates.words), MarkerRandomness(1))
    filler = MaskedFiller(model, candidates, choice, batch_sentences=batch_sentences)
    sentences = [read_masked_line(line, number, merge_markers=True) for number, line in enumerate(LINES, start=1)]
    return [[fill.word for fill in fills] for fills in filler.fill(sentences, lambda slots: None)]


@pytest.mark.parametrize("name", MIXING)
def test_sentences_of_other_lengths_do_not_change_a_fill(name):
    model = mixing_model(name)
    assert model.equal_lengths
    assert words(model, 64) == words(model, 1)


@pytest.mark.parametrize("name", MIXING)
def test_nor_a_table_of_candidates(name):
    model = mixing_model(name)
    candidates = candidate_words(model.tokenizer, name="tiny")
    allowed = KeptWords().off_list(candidates.words)
    places = [OpenPlace(tuple(line.split("[MASK]")[:2]), 0) for line in LINES]
    table = candidate_log_probabilities(model, candidates, allowed, places)
    for place, row in zip(places, table, strict=True):
        (alone,) = candidate_log_probabilities(model, candidates, allowed, [place])
        assert abs(row - alone).max() < 1e-4  # the rounding of sums


@pytest.mark.parametrize("family", FAMILIES)
def test_others_share_batches_as_before(family):
    assert not MaskedLanguageModel(random_model(family), tokenizer_of(family), family).prepared().equal_lengths


def test_the_probe_is_two_forward_passes_of_a_few_pieces(monkeypatch):
    asked = []
    logits = MaskedLanguageModel.logits

    def noted(self, windows):
        asked.append([len(window.pieces) for window in windows])
        return logits(self, windows)

    monkeypatch.setattr(MaskedLanguageModel, "logits", noted)
    MaskedLanguageModel(random_model("bert"), tokenizer_of("bert"), "bert").prepared()
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
