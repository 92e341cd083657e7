"""Model folders: read back as written, private where asked, and nothing damaged is used."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tasks.errors import ModelError
from tasks.language_model.transformer.model import TransformerLanguageModel, load_model, save_model
from tasks.language_model.vocabulary import Vocabulary


@pytest.fixture
def folder(tmp_path: Path, small_model: Callable[..., TransformerLanguageModel], vocabulary: Vocabulary) -> Path:
    save_model(tmp_path / "model", small_model(), vocabulary)
    return tmp_path / "model"


def test_a_model_reads_back_as_it_was_written_and_gives_the_same_bytes(folder, tmp_path, small_model, vocabulary):
    save_model(tmp_path / "again", small_model(), vocabulary)
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    model, read = load_model(folder)
    assert read.tokens == vocabulary.tokens
    assert model.architecture == small_model().architecture
    assert not model.training
    for (name, one), (_, other) in zip(model.named_parameters(), small_model().named_parameters(), strict=True):
        assert torch.equal(one, other), name
        assert one.requires_grad
    assert sorted(file.name for file in folder.iterdir()) == ["model.safetensors", "settings.json", "vocabulary.txt"]


def test_a_folder_with_something_else_is_not_overwritten(tmp_path, small_model, vocabulary):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("kept", encoding="utf-8")
    with pytest.raises(ModelError, match=r"holds 'diary.txt', which is no part of a model"):
        save_model(tmp_path / "notes", small_model(), vocabulary)
    with pytest.raises(ModelError, match="is a file"):
        save_model(tmp_path / "notes" / "diary.txt", small_model(), vocabulary)
    assert (tmp_path / "notes" / "diary.txt").read_text(encoding="utf-8") == "kept"


def test_damaged_weights_are_refused_with_both_hashes(folder):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"is damaged .* its hash is [0-9a-f]{12}, .* saved with [0-9a-f]{12}"):
        load_model(folder)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match="is damaged"):
        load_model(folder)
    path.unlink()
    with pytest.raises(ModelError, match=r"holds no 'model.safetensors'"):
        load_model(folder)


def test_what_is_no_model_is_refused(folder, tmp_path):
    for content, message in (
        ("{", "is not JSON"),
        ("{}", "of kind None"),
        ('{"kind": "transformer"}', "lacks architecture, format, vocabulary, weights"),
        ('{"format": 9, "kind": "transformer", "architecture": {}, "vocabulary": "", "weights": ""}', "format 9"),
        ('{"format": 1, "kind": "ngram"}', r"is of kind 'ngram'; give one of kind 'transformer'"),
    ):
        (folder / "settings.json").write_text(content, encoding="utf-8")
        with pytest.raises(ModelError, match=message):
            load_model(folder)
    with pytest.raises(ModelError, match="'palimpsest pretrain' or 'adapt' makes one"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"holds no 'settings.json'"):
        load_model(tmp_path)
