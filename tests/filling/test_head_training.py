import math

import pytest
from tiny_masked_models import bert_of_bias, random_bert, save, word_piece_tokenizer
from transformers import BertModel

from tasks.errors import CorpusError, ParameterError
from tasks.filling.fillers.filler_folder import save_filler
from tasks.filling.fillers.preparation import train_head
from tasks.filling.fillers.settings import HeadTraining
from tasks.filling.masked_lm.loading import load_masked_model
from tasks.filling.masked_lm.masked_training import masked_accuracy

TOKENIZER = word_piece_tokenizer()
SETTINGS = HeadTraining(
    steps=150, batch_pieces=64, longest_sentence=16, learning_rate=0.02, body_learning_rate=0.02, masked_share=0.25
)


@pytest.fixture(scope="module")
def body(tmp_path_factory):
    return save(BertModel(random_bert(TOKENIZER).config), TOKENIZER, tmp_path_factory.mktemp("body") / "body")


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
