import argparse
import importlib
import json
import shutil
from pathlib import Path

import pytest

import tasks
from tasks.cli import command_parser
from tasks.filling import fill_command
from tasks.filling.settings import Sample, TopK
from tasks.filling.shards import fill_key


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("masked", "kept", "sidecar"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "filler").mkdir()
    (tmp_path / "filler" / "weights").write_text("weights\n")
    return tmp_path


SETTINGS = TopK(kind="top_k")


def key(*options: str, settings=SETTINGS, threads=1) -> str:
    given = ["--input", "masked", "--output", "out", "--method", "top_k", "--filler", "filler", "--kept-words", "kept"]
    arguments: argparse.Namespace = command_parser("fill", fill_command).parse_args([*given, *options])
    return fill_key.fill_key(arguments, settings, threads, ["masked", "kept"], {})


def test_the_same_work_has_the_same_key(files):
    assert key() == key()


@pytest.mark.parametrize(
    "options",
    [
        ["--output", "other"], ["--report", "other"], ["--devices", "2"], ["--no-resume"], ["--work-folder", "other"],
        ["--dataset", "chat"], ["--technique", "list"], ["--filler-name", "tiny"], ["--params", "params.yaml"],
    ],
)  # fmt: skip
def test_what_changes_no_byte_is_not_in_it(files, options):
    assert key(*options) == key()


@pytest.mark.parametrize(
    "options", [["--seed", "2"], ["--sidecar", "sidecar"], ["--word-counts", "kept"], ["--input", "kept"]]
)
def test_options_that_decide_the_result_are_in_it(files, options):
    assert key(*options) != key()


def test_settings_and_threads_are_in_it(files):
    keys = {key(), key(settings=TopK(kind="top_k", k=3)), key(settings=Sample(kind="sample")), key(threads=2)}
    assert len(keys) == 4


@pytest.mark.parametrize("name", ["masked", "kept", "filler/weights"])
def test_the_content_of_files_is_in_it(files, name):
    before = key()
    (files / name).write_text("changed\n")
    assert key() != before


@pytest.mark.parametrize("record", ["causal_filler.json", "adapter_config.json"])
def test_the_content_of_an_adapters_base_is_in_it(files, record):
    name = {"causal_filler.json": "base", "adapter_config.json": "base_model_name_or_path"}[record]
    (files / "models").mkdir()
    (files / "models" / "weights").write_text("weights\n")
    (files / "filler" / record).write_text(json.dumps({name: "models"}))
    before = key()
    (files / "models" / "weights").write_text("changed\n")
    changed = key()
    assert changed != before
    (files / "filler" / record).write_text(json.dumps({name: "a/b/absent"}))
    assert key() not in (before, changed)


def test_a_file_that_a_later_option_names_is_in_it(files):
    arguments = command_parser("fill", fill_command).parse_args(["--input", "masked", "--output", "o", "--method", "m"])
    arguments.added_later = "./sidecar"
    before = fill_key.fill_key(arguments, SETTINGS, 1, ["masked"], {})
    (files / "sidecar").write_text("changed\n")
    assert fill_key.fill_key(arguments, SETTINGS, 1, ["masked"], {}) != before


def test_a_tagger_in_a_folder_with_a_bare_name_is_in_it(files):
    (files / "mytagger").mkdir()
    (files / "mytagger" / "weights").write_text("weights\n")
    settings = TopK(
        kind="top_k", classes="match", class_check={"tagger": {"kind": "transformers", "model": "mytagger"}}
    )
    before = key(settings=settings)
    (files / "mytagger" / "weights").write_text("changed\n")
    assert key(settings=settings) != before


@pytest.mark.parametrize("kind", ["spacy", "presidio"])
def test_the_version_and_content_of_an_installed_tagger_are_in_it(files, monkeypatch, kind):
    tagger = {"kind": kind, "model": "en_mytagger"}

    def install(version, content):
        shutil.rmtree(files / "site", ignore_errors=True)
        (files / "site" / "en_mytagger" / "__pycache__").mkdir(parents=True)
        (files / "site" / "en_mytagger" / "__init__.py").write_text("")
        (files / "site" / "en_mytagger" / "weights").write_text(content)
        (files / "site" / f"en_mytagger-{version}.dist-info").mkdir()
        metadata = f"Metadata-Version: 2.1\nName: en_mytagger\nVersion: {version}\n"
        (files / "site" / f"en_mytagger-{version}.dist-info" / "METADATA").write_text(metadata)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(str(files / "site"))
    keys = []
    for version, content in (("1.0", "weights"), ("2.0", "weights"), ("1.0", "changed"), ("1.0", "weights")):
        install(version, content)
        keys.append(key(settings=TopK(kind="top_k", classes="match", class_check={"tagger": tagger})))
        unused = key(settings=TopK(kind="top_k", class_check={"tagger": tagger}))
    assert len(set(keys)) == 3
    assert keys[3] == keys[0]
    (files / "site" / "en_mytagger" / "__pycache__" / "__init__.cpython-311.pyc").write_text("compiled")
    assert key(settings=TopK(kind="top_k", classes="match", class_check={"tagger": tagger})) == keys[0]
    install("2.0", "weights")
    assert key(settings=TopK(kind="top_k", class_check={"tagger": tagger})) == unused


def test_the_commit_of_a_tagger_of_the_hub_is_in_it(files, monkeypatch):
    tagger = {"kind": "transformers", "model": "dslim/bert-base-NER"}
    settings = TopK(kind="top_k", classes="match", class_check={"tagger": tagger})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    keys = []
    for commit in ("1a2b", "3c4d", "1a2b"):
        monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda name, file, c=commit: f"/cache/{name}/{c}/{file}")
        keys.append(key(settings=settings))
    assert keys[0] == keys[2] != keys[1]


def test_the_tagger_that_ships_is_in_it(files, monkeypatch):
    settings = TopK(kind="top_k", classes="match", class_check={"tagger": {"kind": "crf"}})
    before = key(settings=settings)
    (files / "shipped").mkdir()
    monkeypatch.setattr(
        fill_key, "locate_model", lambda model: str(files / "shipped") if "crf_model" in model else model
    )
    assert key(settings=settings) != before


def test_the_code_and_the_versions_are_in_it(files, monkeypatch):
    before = key()
    monkeypatch.setattr(fill_key, "_code_hash", lambda: "changed")
    changed = key()
    monkeypatch.setattr(fill_key, "version", lambda _: "0")
    assert len({before, changed, key()}) == 3


def test_the_code_of_every_step_that_a_fill_uses_is_in_it():
    root = Path(tasks.__file__).parent
    found = {file.relative_to(root).as_posix() for file in fill_key.code_files()}
    assert {
        "model_source.py",
        "corpora/words.py",
        "files/atomic_file.py",
        "filling/fill_command.py",
        "filling/masked_lm/masked_filler.py",
        "filling/shards/fill_key.py",
        "labelled_text/people.py",
        "masking/taggers/crf_tagger.py",
        "parameters/parameter_file.py",
    } <= found
    assert not [name for name in found if name.startswith(("language_model/", "reports/"))]
