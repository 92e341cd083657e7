"""The Transformer against Hugging Face's with the same weights, its loss against the ordinary one, and its folder."""

import pytest
import torch
from torch.nn import functional

from benchmarks.language_model import Size, peer_of
from tasks.errors import ModelError
from tasks.language_model.transformer import chunked_cross_entropy as module
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import load_model, save_model
from tasks.language_model.transformer.processor_products import EXACT_WORDS, blockwise_log_probabilities


def test_scores_and_gradients_equal_those_of_gpt2_with_the_same_weights(small_model):
    model = small_model(seed=3, layers=2, width=16, maximum_tokens=12)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():  # biases and norms away from 0 and 1, so that each of them counts
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    tokens = torch.randint(0, model.embedding.num_embeddings, (3, 12), generator=torch.Generator().manual_seed(1))
    size = Size(model.embedding.num_embeddings, 16, layers=2, heads=2, maximum_tokens=12)
    peer = peer_of(size, model.eval()).eval()
    ours, theirs = model.logits(tokens), peer(tokens).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    (ours**2).mean().backward()
    (theirs**2).mean().backward()
    torch.testing.assert_close(model.embedding.weight.grad, peer.transformer.wte.weight.grad, rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(model.logits(tokens), theirs, rtol=1e-4, atol=1e-4)


def test_loss_and_gradients_equal_the_ordinary_ones(monkeypatch):
    """Hidden states (11, 6), projection (23, 6), targets (11,), weights (11,), in chunks of 4 and rows of 3."""
    monkeypatch.setattr(module, "CHUNK_POSITIONS", 4)
    monkeypatch.setattr(module, "ROWS_IN_CACHE", 3)
    generator = torch.Generator().manual_seed(7)
    hidden = torch.randn(11, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    projection = torch.randn(23, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    targets = torch.randint(0, 23, (11,), generator=generator)
    targets[5] = targets[4]  # the same target twice: its gradients add up
    weights = torch.rand(11, dtype=torch.float64, generator=generator)
    weights[2] = 0.0
    ordinary = (functional.cross_entropy(hidden @ projection.t(), targets, reduction="none") * weights).sum()
    expected = torch.autograd.grad(ordinary * 3, (hidden, projection))
    ours = chunked_cross_entropy(hidden, projection, targets, weights)
    found = torch.autograd.grad(ours * 3, (hidden, projection))
    torch.testing.assert_close(ours, ordinary, rtol=1e-12, atol=1e-12)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    scores = chunked_log_probabilities(hidden, projection, targets)
    expected = torch.log_softmax(hidden @ projection.t(), dim=1)[torch.arange(11), targets]
    torch.testing.assert_close(scores, expected.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("words", [5000, 25_000])
def test_scores_by_blocks_of_words_are_the_ordinary_ones(words):
    """Of a large vocabulary the many rare words are rounded, which have little of the probability."""
    generator = torch.Generator().manual_seed(2)
    hidden, projection = (torch.randn(count, 16, generator=generator) for count in (40, words))
    projection[EXACT_WORDS:] *= 0.2
    expected = (hidden @ projection.t()).log_softmax(1)
    for targets in (expected.argmax(1), torch.randint(0, words, (40,), generator=generator)):
        found = blockwise_log_probabilities(hidden, projection, targets)
        torch.testing.assert_close(found, expected[torch.arange(40), targets], rtol=0, atol=1e-4)


@pytest.fixture
def folder(tmp_path, small_model, vocabulary):
    save_model(tmp_path / "model", small_model(), vocabulary)
    return tmp_path / "model"


def test_a_folder_with_something_else_is_not_overwritten(tmp_path, small_model, vocabulary):
    diary = tmp_path / "notes" / "diary.txt"
    diary.parent.mkdir()
    diary.write_text("kept", encoding="utf-8")
    for path, message in ((diary.parent, r"holds 'diary.txt', which is no part of a model"), (diary, "is a file")):
        with pytest.raises(ModelError, match=message):
            save_model(path, small_model(), vocabulary)
    assert diary.read_text(encoding="utf-8") == "kept"


DAMAGED = r"is damaged .* its hash is [0-9a-f]{12}, .* saved with [0-9a-f]{12}"
NEXT_FORMAT = b'{"format": 9, "kind": "transformer", "architecture": {}, "vocabulary": "", "weights": ""}'


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.safetensors", lambda content: content[:-1] + bytes([content[-1] ^ 1]), DAMAGED),
        ("model.safetensors", None, r"holds no 'model.safetensors'"),
        ("settings.json", lambda content: b"{", "is not JSON"),
        ("settings.json", lambda content: b'{"kind": "transformer"}', "lacks architecture, format, vocabulary"),
        ("settings.json", lambda content: NEXT_FORMAT, "format 9"),
        ("settings.json", lambda content: b'{"kind": "ngram"}', r"is of kind 'ngram'; give one of kind 'transformer'"),
    ],
    ids=["damaged", "no weights", "no JSON", "lacking", "next format", "other kind"],
)
def test_what_is_damaged_or_no_model_is_refused(folder, name, change, message):
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if change:
        (folder / name).write_bytes(change(content))
    with pytest.raises(ModelError, match=message):
        load_model(folder)
    with pytest.raises(ModelError, match="'palimpsest pretrain' or 'adapt' makes one"):
        load_model(folder / "nowhere")
