"""An original checkpoint becomes the model that it was made from."""

import base64

import pytest
import torch
from tiny_whisper import make_model

from tasks.errors import ModelError
from tasks.speech.whisper.original_checkpoint import load_original, marks_of
from tasks.speech.whisper.recogniser import load_whisper, read_ranks

ENGLISH_SIZE = 51864
# What OpenAI's code calls the weights, with what transformers calls them; biases alike.
ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}
OTHERS = {
    "encoder.conv1": "encoder.conv1",
    "encoder.conv2": "encoder.conv2",
    "encoder.ln_post": "encoder.layer_norm",
    "decoder.ln": "decoder.layer_norm",
    "decoder.token_embedding": "decoder.embed_tokens",
    "encoder.blocks.0.attn_ln": "encoder.layers.0.self_attn_layer_norm",
    "encoder.blocks.0.mlp_ln": "encoder.layers.0.final_layer_norm",
    "encoder.blocks.0.mlp.0": "encoder.layers.0.fc1",
    "encoder.blocks.0.mlp.2": "encoder.layers.0.fc2",
    "decoder.blocks.0.attn_ln": "decoder.layers.0.self_attn_layer_norm",
    "decoder.blocks.0.cross_attn_ln": "decoder.layers.0.encoder_attn_layer_norm",
    "decoder.blocks.0.mlp_ln": "decoder.layers.0.final_layer_norm",
    "decoder.blocks.0.mlp.0": "decoder.layers.0.fc1",
    "decoder.blocks.0.mlp.2": "decoder.layers.0.fc2",
}


def original_weights(model):
    weights = model.state_dict()
    names = dict(OTHERS)
    for theirs, ours in ATTENTION.items():
        names[f"encoder.blocks.0.attn.{theirs}"] = f"encoder.layers.0.self_attn.{ours}"
        names[f"decoder.blocks.0.attn.{theirs}"] = f"decoder.layers.0.self_attn.{ours}"
        names[f"decoder.blocks.0.cross_attn.{theirs}"] = f"decoder.layers.0.encoder_attn.{ours}"
    found = {
        f"{theirs}.{kind}": weights[f"model.{ours}.{kind}"]
        for theirs, ours in names.items()
        for kind in ("weight", "bias")
        if f"model.{ours}.{kind}" in weights
    }
    for part in ("encoder", "decoder"):
        found[f"{part}.positional_embedding"] = weights[f"model.{part}.embed_positions.weight"]
    return found


@pytest.fixture(scope="module")
def source():
    return make_model(ENGLISH_SIZE, 50256)


@pytest.fixture(scope="module")
def checkpoint(source):
    config = source.config
    sizes = {
        "n_mels": 80, "n_vocab": ENGLISH_SIZE,
        "n_audio_ctx": config.max_source_positions, "n_text_ctx": config.max_target_positions,
        "n_audio_state": 8, "n_audio_head": 2, "n_audio_layer": 1,
        "n_text_state": 8, "n_text_head": 2, "n_text_layer": 1,
    }  # fmt: skip
    return {"dims": sizes, "model_state_dict": original_weights(source)}


def test_same_logits(source, checkpoint, tmp_path):
    torch.save(checkpoint, tmp_path / "tiny.en.pt")
    loaded = load_original(tmp_path / "tiny.en.pt")
    features = torch.randn(2, 80, 200, generator=torch.Generator().manual_seed(3))
    ids = torch.tensor([[50257, 50362, 5, 6], [50257, 50362, 7, 8]])
    with torch.inference_mode():
        torch.testing.assert_close(
            loaded(input_features=features, decoder_input_ids=ids).logits,
            source(input_features=features, decoder_input_ids=ids).logits,
        )
    generation = loaded.generation_config
    assert (generation.decoder_start_token_id, generation.no_timestamps_token_id) == (50257, 50362)


def test_whole_recogniser_from_a_checkpoint(checkpoint, tmp_path):
    torch.save(checkpoint, tmp_path / "tiny.en.pt")
    pieces = [bytes([byte]) for byte in range(256)] + [b" word%d" % number for number in range(50000)]
    lines = [base64.b64encode(piece) + b" %d\n" % rank for rank, piece in enumerate(pieces)]
    (tmp_path / "gpt2.tiktoken").write_bytes(b"".join(lines))
    recogniser = load_whisper(str(tmp_path / "tiny.en.pt"), str(tmp_path / "gpt2.tiktoken"))
    space = recogniser.search_space("en")
    assert space.prompt == (50257, 50362)
    assert space.end == 50256
    assert set(range(50257, ENGLISH_SIZE)) <= set(space.forbidden)
    assert 50256 not in space.forbidden
    assert recogniser.pieces.decode([72, 105, 256 + 7]) == "Hi word7"
    # Ten bytes are digits, and all the words above have one.
    without = set(recogniser.search_space("en", no_digits=True).forbidden)
    assert {*range(48, 58), *range(256, 50256)} <= without
    assert {*range(65, 91), *range(97, 123)} & without <= set(space.forbidden)


def test_published_ids_of_marks():
    """Ids of tiny.en, tiny and large-v3, as their configurations on the hub have them."""
    for size, known in [
        (51864, {"startoftranscript": 50257, "transcribe": 50358, "notimestamps": 50362}),
        (51865, {"startoftranscript": 50258, "en": 50259, "transcribe": 50359, "notimestamps": 50363}),
        (51866, {"startoftranscript": 50258, "yue": 50358, "transcribe": 50360, "notimestamps": 50364}),
    ]:
        marks = marks_of(size)
        assert {name: marks[f"<|{name}|>"] for name in known} == known


def test_the_empty_piece_of_the_multilingual_vocabulary_and_what_is_no_vocabulary(tmp_path):
    path = tmp_path / "v.tiktoken"
    path.write_bytes(b"IGE= 0\n= 1\n")
    assert read_ranks(path).decode([0, 1, 0]) == "a a"
    for content in (b"", b"no base64 here\n", b"IGE= 0\nIGI= 2\n"):
        path.write_bytes(content)
        with pytest.raises(ModelError, match=r"is no \.tiktoken file"):
            read_ranks(path)


def test_what_is_no_checkpoint(checkpoint, tmp_path):
    path = tmp_path / "bad.pt"
    path.write_bytes(b"")
    with pytest.raises(ModelError, match="no checkpoint of Whisper"):
        load_original(path)
    weights = dict(checkpoint["model_state_dict"])
    weights["decoder.surplus"] = weights.pop("decoder.ln.bias")
    for content, message in [
        ({"weights": {}}, "no checkpoint of Whisper"),
        ([1, 2], "no checkpoint of Whisper"),
        (checkpoint | {"model_state_dict": weights}, "lacks 1 weights of a Whisper model and has 1 that are none"),
        (checkpoint | {"dims": checkpoint["dims"] | {"n_mels": 81}}, "do not have the sizes"),
    ]:
        torch.save(content, path)
        with pytest.raises(ModelError, match=message):
            load_original(path)
    torch.save(checkpoint, path)
    with pytest.raises(ModelError, match=r"vocabulary .* does not exist"):
        load_whisper(str(path), str(tmp_path / "none.tiktoken"))
