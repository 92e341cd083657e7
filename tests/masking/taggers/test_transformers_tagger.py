"""The tagger against a token classifier whose answers are known: its one layer tells capitals from the rest."""

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tasks.masking.settings import TransformersTagger
from tasks.masking.taggers.entity_classes import ENTITY_CLASSES
from tasks.masking.taggers.transformers_tagger import TransformersModel
from tasks.torch_setup import stand_in_for_torchaudio_extension

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
WORDS = {"tom": "B-PER", "smith": "I-PER", "ann": "B-PER", "paris": "B-LOC", "texas": "I-LOC", "likes": "O", "in": "O"}
POSITIONS = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT without layers' influence: the embedding of each word is its label, and the classifier reads it off."""
    stand_in_for_torchaudio_extension()
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    vocabulary = {token: index for index, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    fast.model_max_length = POSITIONS
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=8, num_hidden_layers=0, num_attention_heads=1, intermediate_size=8,
        max_position_embeddings=POSITIONS,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
    )  # fmt: skip
    model = BertForTokenClassification(config)
    with torch.no_grad():
        embeddings = model.bert.embeddings
        for weights in (embeddings.word_embeddings, embeddings.position_embeddings, embeddings.token_type_embeddings):
            weights.weight.zero_()
        for token, index in vocabulary.items():
            embeddings.word_embeddings.weight[index, LABELS.index(WORDS.get(token, "O"))] = 1.0
        model.classifier.weight.zero_()
        model.classifier.weight[:, : len(LABELS)] = torch.eye(len(LABELS)) * 5
        model.classifier.bias.zero_()
    path = tmp_path_factory.mktemp("tagger")
    model.save_pretrained(path)
    fast.save_pretrained(path)
    return str(path)


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
    lines = ["ann", "tom smith likes ann in paris texas " * 40, "", "in paris", "likes " * 30] * 5
    tagged = list(model.tag(iter(lines)))
    assert [line for line, _ in tagged] == lines
    assert [len(spans) for _, spans in tagged] == [1, 120, 0, 1, 0] * 5
    assert found(model, lines[1]) == [("tom smith", "PER"), ("ann", "PER"), ("paris texas", "LOC")] * 40
    assert model.entity_types == ["LOC", "PER"]


def test_scores_are_the_mean_of_the_tokens_and_entities_of_low_ones_are_left(folder, model):
    ((_, spans),) = list(model.tag(["Tom Smith likes Paris"]))
    # The right label has a logit of 5 times a normalised embedding, the others what is left of it: all tokens alike.
    assert [span.score for span in spans] == pytest.approx([spans[0].score] * 2)
    assert 0.9 < spans[0].score < 1.0
    sure = TransformersModel(TransformersTagger(kind="transformers", model=folder, minimum_score=1.0), threads=1)
    assert found(sure, "Tom Smith") == []


def test_a_privacy_filter_with_tags_of_the_last_and_the_only_token(folder, tmp_path):
    """The architecture of ``openai/privacy-filter``, whose head here reads the label off the embedding of each word."""
    from transformers import AutoTokenizer, OpenAIPrivacyFilterConfig, OpenAIPrivacyFilterForTokenClassification

    labels = ["O", *(f"{place}-private_{kind}" for kind in ("person", "address") for place in "BIES")]
    tags = {
        "tom": "B-private_person",
        "smith": "E-private_person",
        "ann": "S-private_person",
        "paris": "S-private_address",
    }
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = OpenAIPrivacyFilterConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        head_dim=8, intermediate_size=8, num_local_experts=2, num_experts_per_tok=1, max_position_embeddings=POSITIONS,
        pad_token_id=0, eos_token_id=3, id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
    )  # fmt: skip
    model = OpenAIPrivacyFilterForTokenClassification(config)
    with torch.no_grad():
        for weights in model.model.layers.parameters():
            weights.zero_()
        embeddings = model.get_input_embeddings().weight.zero_()
        for word, index in tokenizer.get_vocab().items():
            embeddings[index, labels.index(tags.get(word, "O"))] = 1.0
        model.score.weight.zero_()
        model.score.weight[:, : len(labels)] = torch.eye(len(labels)) * 5
        if model.score.bias is not None:
            model.score.bias.zero_()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    filtered = TransformersModel(TransformersTagger(kind="transformers", model=str(tmp_path)), threads=1)
    assert filtered.entity_types == ["private_address", "private_person"]
    assert found(filtered, "Tom Smith likes Ann in Paris") == [
        ("Tom Smith", "private_person"), ("Ann", "private_person"), ("Paris", "private_address"),
    ]  # fmt: skip
    assert {ENTITY_CLASSES[name] for name in filtered.entity_types} == {"PERSON", "LOCATION"}
