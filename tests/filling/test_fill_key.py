"""One hash of all that decides what a fill writes: an interrupted one goes on where nothing of it has changed."""

import json

import pytest

from tasks.filling import filled_shards
from tasks.filling.context import FillContext
from tasks.filling.fill import FillFiles
from tasks.filling.methods.sample import Sample
from tasks.filling.methods.top_k import TopK
from tasks.records.cell import Cell
from tasks.shards import work_key

SETTINGS, CELL = TopK(kind="top_k"), Cell(seed=1)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("masked", "kept", "other"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "counts").write_text("word\t2\n")
    for name in ("filler", "tagger"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text("weights\n")
    return tmp_path


def key(settings=SETTINGS, cell=CELL, threads=1, **given):
    files = FillFiles(**{"input": "masked", "output": "out", "filler": "filler", "kept_words": "kept", **given})
    return filled_shards.fill_key(FillContext.read(settings, files, cell, threads))


def matching(tagger):
    return TopK(kind="top_k", classes="match", class_check={"tagger": {"kind": "transformers", "model": tagger}})


def test_what_changes_no_byte_is_not_in_it(files):
    # It learns nothing, so that it reads none of the later ones.
    same = [{"output": "other"}, {"documents": "other"}, {"generic": "other"}]
    same += [{"cell": Cell("chat", "list", "top_k", "tiny", 1)}]
    assert {key(), *(key(**given) for given in same)} == {key()}


def test_what_decides_the_result_is_in_it(files):
    other = [{"cell": Cell(seed=2)}, {"sidecar": "other"}, {"word_counts": "counts"}, {"input": "other"}]
    other += [{"settings": TopK(kind="top_k", k=3)}, {"settings": Sample(kind="sample")}, {"threads": 2}]
    other += [{"settings": matching("tagger")}]
    assert len({key(), *(key(**given) for given in other)}) == 1 + len(other)


@pytest.mark.parametrize("name", ["masked", "kept", "filler/weights", "tagger/weights"])
def test_the_content_of_files_and_models_is_in_it(files, name):
    before = key(matching("tagger"))
    (files / name).write_text("changed\n")
    assert key(matching("tagger")) != before


@pytest.mark.parametrize("record", ["causal_filler.json", "adapter_config.json"])
def test_the_content_of_an_adapters_base_is_in_it(files, record):
    name = {"causal_filler.json": "base", "adapter_config.json": "base_model_name_or_path"}[record]
    (files / "filler" / record).write_text(json.dumps({name: "tagger"}))
    before = key()
    (files / "tagger" / "weights").write_text("changed\n")
    assert key() != before


def test_the_commit_of_a_model_of_the_hub_is_in_it(files, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    keys = []
    for commit in ("1a2b", "3c4d", "1a2b"):
        monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda name, file, c=commit: f"/cache/{name}/{c}/{file}")
        keys.append(key(matching("dslim/bert-base-NER")))
    assert keys[0] == keys[2] != keys[1]


def test_the_versions_and_the_code_are_in_it_committed_or_not(files, monkeypatch):
    keys = [key()]
    monkeypatch.setattr(work_key, "version", lambda _: "0")
    keys.append(key())
    (files / "package").mkdir()
    monkeypatch.setattr(work_key, "_PACKAGE", files / "package")
    for code in ("words = 1\n", "words = 2\n"):
        (files / "package" / "fill.py").write_text(code)
        keys.append(key())
    assert len(set(keys)) == 4
