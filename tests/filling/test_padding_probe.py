"""A fill does not depend on what else is in its batch, even where a model mixes padding into a sentence."""

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
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, Window
from tasks.filling.masked_lm.masked_training import WordMasker, masked_accuracy
from tasks.filling.masked_lm.places import OpenPlace, candidate_log_probabilities
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.top_1 import Top1

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
    return MaskedLanguageModel(model.eval(), tokenizer, name)


def words(model, batch_sentences):
    candidates = candidate_words(model.tokenizer, name="tiny")
    choice = Top1(kind="top_1").choice(KeptWords().off_list(candidates.words), MarkerRandomness(1))
    filler = MaskedFiller(model, candidates, choice, batch_sentences=batch_sentences)
    sentences = [read_masked_line(line, number, merge_markers=True) for number, line in enumerate(LINES, start=1)]
    return [[fill.word for fill in fills] for fills in filler.fill(sentences, lambda slots: None)]


def test_sentences_of_other_lengths_do_not_change_a_fill():
    for name in MIXING:
        model = mixing_model(name).prepared()
        assert model.equal_lengths
        assert words(model, 64) == words(model, 1)


def test_nor_a_table_of_candidates():
    for name in MIXING:
        model = mixing_model(name).prepared()
        candidates = candidate_words(model.tokenizer, name="tiny")
        allowed = KeptWords().off_list(candidates.words)
        places = [OpenPlace(tuple(line.split("[MASK]")[:2]), 0) for line in LINES]
        table = candidate_log_probabilities(model, candidates, allowed, places)
        for place, row in zip(places, table, strict=True):
            (alone,) = candidate_log_probabilities(model, candidates, allowed, [place])
            assert abs(row - alone).max() < 1e-4  # the rounding of sums


def test_others_share_batches_as_before():
    for family in FAMILIES:
        assert not MaskedLanguageModel(random_model(family), tokenizer_of(family), family).prepared().equal_lengths


TRAINING = ["the cat sat", "tom likes the dog", "is it a red cat", "the dog ran in paris and the cat ran"] * 12


@pytest.fixture
def batches(monkeypatch):
    """Every batch of masked words that is made."""
    made = []
    batch = WordMasker.batch

    def noted(self, sentences, share, random):
        made.append(batch(self, sentences, share, random))
        return made[-1]

    monkeypatch.setattr(WordMasker, "batch", noted)
    return made


def padded(batches):
    return [not bool(batch.attention.all()) for batch in batches]


@pytest.mark.parametrize("name", MIXING)
def test_held_out_words_are_guessed_as_in_sentences_that_stand_alone(name, batches):
    model = mixing_model(name)
    measured = masked_accuracy(model.model, model.tokenizer, TRAINING, name=name)
    assert not any(padded(batches))
    loss = words = 0
    for batch in batches:
        for row in range(len(batch.pieces)):
            here = batch.rows == row
            alone = model.logits([Window(batch.pieces[row].tolist(), batch.positions[here].tolist())])
            loss += torch.nn.functional.cross_entropy(alone, batch.targets[here], reduction="sum").item()
            words += int(here.sum())
    assert measured["valid_words"] == words
    assert measured["valid_loss"] == pytest.approx(loss / words, rel=1e-4)


@pytest.mark.parametrize("name", MIXING)
def test_a_head_is_trained_on_sentences_without_padding(name, batches):
    model = mixing_model(name)
    settings = HeadTraining(steps=4, batch_pieces=64)
    measured = train_head(model.model, model.tokenizer, [], TRAINING, settings, name=name)
    assert len({batch.pieces.shape[1] for batch in batches}) > 1
    assert not any(padded(batches))
    assert measured["pieces"] == sum(batch.pieces.numel() for batch in batches)


def test_a_filler_is_tuned_on_sentences_without_padding(tmp_path, batches):
    model = mixing_model("fnet")
    lines = [f"{line} {number}" for number, line in enumerate(TRAINING)]
    (tmp_path / "masked.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    base = save(model.model, model.tokenizer, tmp_path / "base")
    options = [
        "--input",
        str(tmp_path / "masked.txt"),
        "--output",
        str(tmp_path / "tuned"),
        *settings("batch_pieces=64"),
    ]
    assert main(["tune-filler", "--base", base, *options, *settings("minimum_sentences=10", "steps=4")]) == 0
    assert len({batch.pieces.shape[1] for batch in batches}) > 1
    assert not any(padded(batches))


def test_other_models_train_and_are_tested_on_padded_batches_as_before(batches):
    model, tokenizer = random_model("bert"), tokenizer_of("bert")
    train_head(model, tokenizer, [], TRAINING, HeadTraining(steps=4, batch_pieces=96), name="bert")
    assert any(padded(batches))
    batches.clear()
    masked_accuracy(model, tokenizer, TRAINING, name="bert")
    assert padded(batches) == [True, True]
    assert [len(batch.pieces) for batch in batches] == [32, 16]


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
