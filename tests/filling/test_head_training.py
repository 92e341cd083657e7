import math

import numpy as np
import pytest
import torch
from tiny_masked_models import bert_of_bias, random_bert, save, word_piece_tokenizer
from transformers import BertModel

from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.filling.fillers.filler_folder import save_filler
from tasks.filling.fillers.preparation import initialise_fresh_weights, train_head
from tasks.filling.fillers.settings import HeadTraining
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_language_model import load_masked_model
from tasks.filling.masked_lm.masked_training import WordMasker, length_batches, masked_accuracy

TOKENIZER = word_piece_tokenizer()
PAIRS = ["red cat", "dog ran", "tom sat", "paris mat"]
"""Each word tells the other one, so a model that has learned guesses every masked word."""
SETTINGS = HeadTraining(
    steps=150, batch_pieces=64, longest_sentence=16, learning_rate=0.02, body_learning_rate=0.02, masked_share=0.25
)


def masker():
    return WordMasker(TOKENIZER, candidate_words(TOKENIZER, name="tiny"), len(TOKENIZER))


@pytest.fixture(scope="module")
def body(tmp_path_factory):
    return save(BertModel(random_bert(TOKENIZER).config), TOKENIZER, tmp_path_factory.mktemp("body") / "body")


def trained(body, settings=SETTINGS):
    model, tokenizer, missing = load_masked_model(body)
    measured = train_head(model, tokenizer, missing, PAIRS * 40, settings, name="tiny")
    return model, measured


def test_a_head_learns_what_can_be_known(body):
    model, measured = trained(body)
    curve = [point["loss"] for point in measured["loss_curve"]]
    assert curve[0] > 1.5
    assert curve[-1] < 0.2
    accuracy = masked_accuracy(model, TOKENIZER, PAIRS, name="tiny")
    assert accuracy["valid_words"] == 4
    assert accuracy["valid_top_1_accuracy"] == 1.0


def test_units_are_left_out_at_random_in_training_alone(body):
    first, measured = trained(body, SETTINGS.model_copy(update={"steps": 20, "dropout": 0.5}))
    second, again = trained(body, SETTINGS.model_copy(update={"steps": 20, "dropout": 0.5}))
    _, without = trained(body, SETTINGS.model_copy(update={"steps": 20}))
    assert measured["loss_curve"] == again["loss_curve"] != without["loss_curve"]
    assert masked_accuracy(first, TOKENIZER, PAIRS, name="tiny") == masked_accuracy(
        second, TOKENIZER, PAIRS, name="tiny"
    )


def test_the_same_seed_trains_the_same_filler(body):
    settings = SETTINGS.model_copy(update={"steps": 5})
    first, again = (trained(body, settings)[0].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    other = trained(body, settings.model_copy(update={"seed": 2}))[0].state_dict()
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_a_frozen_body_stays_as_it_was(body):
    before = load_masked_model(body)[0].bert.state_dict()
    after = trained(body, SETTINGS.model_copy(update={"steps": 5, "body_learning_rate": 0.0}))[0].bert.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_lines_are_cut_to_what_the_model_takes(tmp_path):
    """32 positions, where the settings would have 1000 and the test of held-out text 128."""
    small = BertModel(random_bert(TOKENIZER, positions=32).config)
    model, tokenizer, missing = load_masked_model(save(small, TOKENIZER, tmp_path / "small"))
    line = " ".join(["red cat"] * 450)
    settings = HeadTraining(steps=2, batch_pieces=64, longest_sentence=1000)
    assert train_head(model, tokenizer, missing, [line] * 4, settings, name="tiny")["pieces"] == 2 * 2 * 32
    assert masked_accuracy(model, tokenizer, [line], name="tiny")["valid_words"] == round(0.12 * 32)


def test_fresh_weights_begin_at_the_identity_and_at_log_frequencies(body):
    model, _, missing = load_masked_model(body)
    counts = np.zeros(len(TOKENIZER))
    counts[5:8] = [60, 30, 9]
    initialise_fresh_weights(model, missing, counts, np.random.default_rng(1))
    head = model.cls.predictions
    assert torch.equal(head.transform.dense.weight, torch.eye(16))
    assert torch.equal(head.transform.LayerNorm.weight, torch.ones(16))
    assert head.bias[5].item() - head.bias[6].item() == pytest.approx(math.log(60.1 / 30.1), abs=1e-5)
    assert torch.equal(head.decoder.weight, model.bert.embeddings.word_embeddings.weight)


def test_a_loss_that_is_no_number_stops_the_training(body):
    model, tokenizer, missing = load_masked_model(body)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.fill_(float("inf"))
    with pytest.raises(ModelError, match="loss is not a number at step 1"):
        train_head(model, tokenizer, missing, PAIRS, SETTINGS, name="tiny")


def test_training_leaves_a_model_with_the_attention_that_it_came_with():
    for attention in ("sdpa", "eager"):
        model = random_bert(TOKENIZER)
        model.set_attn_implementation(attention)
        train_head(model, TOKENIZER, [], PAIRS, SETTINGS.model_copy(update={"steps": 2}), name="tiny")
        assert model.config._attn_implementation == attention


def test_a_batch_masks_its_share_and_every_sentence():
    sentences = masker().encode(["the cat sat on the red mat", "tom"], 32)
    batch = masker().batch(sentences, 0.34, np.random.default_rng(1))
    assert batch.pieces.shape == (2, 9)
    assert torch.bincount(batch.rows).tolist() == [3, 1]
    assert (batch.pieces[batch.rows, batch.positions] == TOKENIZER.mask_token_id).all()
    assert int((batch.pieces == TOKENIZER.mask_token_id).sum()) == 4
    restored = batch.pieces.clone()
    restored[batch.rows, batch.positions] = batch.targets
    assert restored[0].tolist() == sentences[0]
    assert restored[1, :3].tolist() == sentences[1]
    assert batch.attention.sum(dim=1).tolist() == [9, 3]


def test_special_strings_of_a_text_are_no_special_tokens():
    (sentence,) = masker().encode(["the [MASK] cat [SEP]"], 32)
    assert sentence.count(TOKENIZER.mask_token_id) == 0
    assert sentence.count(TOKENIZER.sep_token_id) == 1


def test_every_sentence_comes_once_per_epoch_and_batches_keep_their_size():
    sentences = [[i] * (1 + i % 7) for i in range(100)]
    batches = length_batches(sentences, 20, np.random.default_rng(1))
    seen = []
    while len(seen) < 100:
        batch = next(batches)
        assert len(batch) * max(map(len, batch)) <= 20
        seen += [sentence[0] for sentence in batch]
    assert sorted(seen) == list(range(100))


def test_masked_accuracy_of_a_model_that_knows_only_frequencies():
    model = bert_of_bias(TOKENIZER, {"cat": math.log(0.5), "dog": math.log(0.25)}, others=-20.0)
    measured = masked_accuracy(model, TOKENIZER, ["cat", "cat", "dog", "cat"], name="tiny")
    total = 0.75 + (len(TOKENIZER) - 2) * math.exp(-20)
    loss = -(3 * math.log(0.5 / total) + math.log(0.25 / total)) / 4
    assert measured["valid_words"] == 4
    assert measured["valid_loss"] == pytest.approx(loss, abs=1e-5)
    assert measured["valid_perplexity"] == pytest.approx(math.exp(loss), rel=1e-5)
    assert measured["valid_top_1_accuracy"] == 0.75
    assert measured["valid_top_10_accuracy"] == 1.0


def test_lines_without_a_word_are_an_error(body):
    with pytest.raises(CorpusError, match=r"none of the 2 held-out lines \(--valid\) has a word that filler 'tiny'"):
        masked_accuracy(random_bert(TOKENIZER), TOKENIZER, ["?!", "..."], name="tiny")
    model, tokenizer, missing = load_masked_model(body)
    with pytest.raises(CorpusError, match="no line with a word"):
        train_head(model, tokenizer, missing, [", .", ""], SETTINGS, name="tiny")


def test_a_saved_filler_replaces_an_earlier_one_and_nothing_else(tmp_path):
    model = random_bert(TOKENIZER)
    save_filler(model, TOKENIZER, tmp_path / "filler")
    (tmp_path / "filler" / "left_over.txt").touch()
    save_filler(model, TOKENIZER, tmp_path / "filler")
    assert {path.name for path in tmp_path.iterdir()} == {"filler"}
    assert not (tmp_path / "filler" / "left_over.txt").exists()
    assert (tmp_path / "filler" / "model.safetensors").stat().st_mode & 0o777 == 0o644
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ParameterError, match="is no filler"):
        save_filler(model, TOKENIZER, tmp_path / "other")
    assert (tmp_path / "other" / "notes.txt").exists()
