"""Model folders: read back as written, private where asked, and nothing damaged is used."""

import pytest
import torch

from tasks.errors import ModelError
from tasks.language_model.transformer.model import load_model, save_model


@pytest.fixture
def folder(tmp_path, small_model, vocabulary):
    save_model(tmp_path / "model", small_model(), vocabulary)
    return tmp_path / "model"


def test_a_model_reads_back_as_it_was_written_and_gives_the_same_bytes(folder, tmp_path, small_model, vocabulary):
    save_model(tmp_path / "again", small_model(), vocabulary)
    for name in (names := ["model.safetensors", "settings.json", "vocabulary.txt"]):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert sorted(file.name for file in folder.iterdir()) == names
    (model, read), written = load_model(folder), small_model()
    assert (read.tokens, model.architecture) == (vocabulary.tokens, written.architecture)
    assert not model.training
    for (name, one), (_, other) in zip(model.named_parameters(), written.named_parameters(), strict=True):
        assert torch.equal(one, other), name
        assert one.requires_grad


def test_a_folder_with_something_else_is_not_overwritten(tmp_path, small_model, vocabulary):
    diary = tmp_path / "notes" / "diary.txt"
    diary.parent.mkdir()
    diary.write_text("kept", encoding="utf-8")
    for path, message in ((diary.parent, r"holds 'diary.txt', which is no part of a model"), (diary, "is a file")):
        with pytest.raises(ModelError, match=message):
            save_model(path, small_model(), vocabulary)
    assert diary.read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content[:-1] + bytes([content[-1] ^ 1]),
            r"is damaged .* its hash is [0-9a-f]{12}, .* saved with [0-9a-f]{12}",
        ),
        (lambda content: content[: len(content) // 2], "is damaged"),
        (None, r"holds no 'model.safetensors'"),
    ],
    ids=["one bit", "half", "missing"],
)
def test_damaged_weights_are_refused_with_both_hashes(folder, change, message):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.unlink()
    if change:
        path.write_bytes(change(content))
    with pytest.raises(ModelError, match=message):
        load_model(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "of kind None"),
        ('{"kind": "transformer"}', "lacks architecture, format, vocabulary, weights"),
        ('{"format": 9, "kind": "transformer", "architecture": {}, "vocabulary": "", "weights": ""}', "format 9"),
        ('{"format": 1, "kind": "ngram"}', r"is of kind 'ngram'; give one of kind 'transformer'"),
        (None, r"holds no 'settings.json'"),
    ],
)
def test_what_is_no_model_is_refused(folder, content, message):
    (folder / "settings.json").unlink()
    if content:
        (folder / "settings.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        load_model(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ModelError, match="'palimpsest pretrain' or 'adapt' makes one"):
        load_model(tmp_path / "nowhere")
