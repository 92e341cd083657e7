"""The tagger against a token classifier whose answers are known: its one layer tells capitals from the rest."""

import pytest
import torch
from tiny_masked_models import word_piece_tokenizer

from tasks.masking.settings import TransformersTagger
from tasks.masking.taggers.transformers_tagger import TransformersModel
from tasks.torch_setup import stand_in_for_torchaudio_extension

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
WORDS = {"tom": "B-PER", "smith": "I-PER", "ann": "B-PER", "paris": "B-LOC", "texas": "I-LOC", "likes": "O", "in": "O"}
POSITIONS = 16


def saved(path, labels, tags):
    """A BERT without layers' influence: the embedding of each word is its label, and the classifier reads it off."""
    stand_in_for_torchaudio_extension()
    from transformers import BertConfig, BertForTokenClassification

    tokenizer = word_piece_tokenizer([*WORDS])
    tokenizer.model_max_length = POSITIONS
    vocabulary = tokenizer.get_vocab()
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=0, num_attention_heads=1, intermediate_size=8,
        max_position_embeddings=POSITIONS, id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
    )  # fmt: skip
    model = BertForTokenClassification(config)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
        embeddings = model.bert.embeddings
        embeddings.LayerNorm.weight.fill_(1.0)
        for token, index in vocabulary.items():
            embeddings.word_embeddings.weight[index, labels.index(tags.get(token, "O"))] = 1.0
        model.classifier.weight[:, : len(labels)] = torch.eye(len(labels)) * 2
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("tagger"), LABELS, WORDS)


@pytest.fixture(scope="module")
def model(folder):
    return TransformersModel(TransformersTagger(kind="transformers", model=folder, batch_size=2), threads=1)


def found(model, line):
    ((returned, spans),) = list(model.tag([line]))
    assert returned == line
    return [(line[span.start : span.end], span.label) for span in spans]


@pytest.mark.parametrize(
    ("line", "entities"),
    [
        ("Tom Smith likes Paris Texas", [("Tom Smith", "PER"), ("Paris Texas", "LOC")]),
        ("Tom Ann in Paris", [("Tom", "PER"), ("Ann", "PER"), ("Paris", "LOC")]),
        ("Smith likes Texas", [("Smith", "PER"), ("Texas", "LOC")]),
        ("", []),
    ],
)
def test_tokens_become_entities(model, line, entities):
    assert found(model, line) == entities


def test_lines_come_in_order_and_long_ones_are_read_in_windows(model):
    lines = ["ann", "tom smith likes ann in paris texas " * 40, "", "in paris", "likes " * 30]
    tagged = list(model.tag(iter(lines)))
    assert [line for line, _ in tagged] == lines
    assert [len(spans) for _, spans in tagged] == [1, 120, 0, 1, 0]
    assert found(model, lines[1]) == [("tom smith", "PER"), ("ann", "PER"), ("paris texas", "LOC")] * 40
    assert model.entity_types == ["LOC", "PER"]


def test_entities_of_low_scores_are_left(folder, model):
    ((_, spans),) = list(model.tag(["Tom Smith likes Paris"]))
    assert all(0.9 < span.score < 1.0 for span in spans)
    sure = TransformersModel(TransformersTagger(kind="transformers", model=folder, minimum_score=1.0), threads=1)
    assert found(sure, "Tom Smith") == []
