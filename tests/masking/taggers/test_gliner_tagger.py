"""The tagger against a small GLiNER2 model with drawn weights, which is asked directly too."""

import pytest
import torch
from tiny_masked_models import word_piece_tokenizer

from tasks.masking.settings import GlinerTagger
from tasks.masking.taggers.entity_classes import ENTITY_CLASSES
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.masking.taggers.gliner_tagger import GlinerModel
from tasks.torch_setup import set_up_torch, stand_in_for_torchaudio_extension

WORDS = "tom smith likes ann in paris texas meets lives works person location entities".split()
SIGNS = "[SEP_TEXT] [SEP_STRUCT] [P] [C] [E] [R] [L] ( ) , .".split()
TYPES = ["person", "location"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    set_up_torch(1)
    stand_in_for_torchaudio_extension()
    from gliner2.configuration import ExtractorConfig
    from gliner2.inference.engine import GLiNER2
    from transformers import BertConfig

    tokenizer = word_piece_tokenizer([*SIGNS, *WORDS])
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    encoder = BertConfig(vocab_size=len(tokenizer), **shape)
    torch.manual_seed(1)
    model = GLiNER2(ExtractorConfig(model_name="tiny", max_width=4), encoder_config=encoder, tokenizer=tokenizer)
    path = tmp_path_factory.mktemp("gliner")
    model.save_pretrained(path)
    return str(path)


def settings(folder, **values):
    return GlinerTagger(kind="gliner", model=folder, entity_types=TYPES, minimum_score=0.45, **values)


def test_entities_are_those_of_the_model_inside_the_line(folder):
    model = GlinerModel(settings(folder, batch_size=2), threads=1)
    lines = ["Tom Smith likes Paris", "Ann lives in Texas", "", "Tom meets Ann.", "Tom Smith likes Paris. " * 300]
    tagged = list(model.tag(iter(lines)))
    assert [line for line, _ in tagged] == lines
    assert model.entity_types == sorted(TYPES)
    from gliner2 import AutoExtractor

    direct = AutoExtractor.from_pretrained(folder).eval()
    for line, spans in tagged[:2]:
        answer = direct.extract_entities(line, TYPES, threshold=0.45, include_confidence=True, include_spans=True)
        # The model puts a full stop after the line.
        wanted = {(name, one["text"].rstrip(".")) for name, each in answer["entities"].items() for one in each}
        assert {(one.label, line[one.start : one.end]) for one in spans} == {one for one in wanted if one[1]} != set()
    for line, spans in tagged:
        assert all(0 <= one.start < one.end <= len(line) and 0.45 <= one.score <= 1 for one in spans)
    # The long line is read in windows, to its end.
    assert max(one.end for one in tagged[4][1]) > 6000


def test_every_type_has_a_class_for_its_masks(folder):
    technique = EntityTagger(kind="entity_tagger", tagger=settings(folder)).build(None, threads=1)
    ((_, found),) = technique.findings(["Ann lives in Texas"])
    assert set() < {one.label for one in found} <= {"PERSON", "LOCATION"}
    assert set(GlinerTagger(kind="gliner", model="x").entity_types) <= set(ENTITY_CLASSES)
