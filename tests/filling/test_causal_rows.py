"""Rows with kept keys and values give the scores of the whole sequence, whatever was read beside them."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from tiny_causal_models import causal_tokenizer, random_causal_model, random_gpt2, random_llama, random_opt

from tasks.errors import ModelError
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.rows import CausalRows, ForwardClock, joined, length_groups, window_of

TOKENIZER = causal_tokenizer()
ROUNDING = 1e-4
"""Sums of the same float32 products in another order."""
LONG, SHORT = [5, 9, 12, 7, 30, 8], [5, 11, 40]


MODELS = {
    "llama": random_llama,
    "gpt2": random_gpt2,
    "opt": random_opt,
    "qwen2": partial(random_causal_model, model_type="qwen2"),
    # Windows of so few columns that many holes make them wrong.
    "mistral": partial(random_causal_model, model_type="mistral", sliding_window=48),
    "gemma3": partial(random_causal_model, model_type="gemma3_text", sliding_window=48, head_dim=8),
    "bloom": partial(random_causal_model, model_type="bloom", n_head=4, n_layer=2, num_key_value_heads=4),
}


@pytest.fixture(params=MODELS)
def language_model(request):
    return CausalLanguageModel(MODELS[request.param](TOKENIZER), TOKENIZER, "tiny")


def alone(language_model, pieces):
    with torch.inference_mode():
        return language_model.model(input_ids=torch.tensor([pieces])).logits[0]


def close(found, expected):
    return torch.allclose(found, expected, atol=ROUNDING)


def test_rows_of_different_lengths_read_on_as_if_alone(language_model):
    rows = CausalRows(language_model, 2, ForwardClock())
    assert rows.read([LONG[:2], SHORT[:1]], [0, 0]).shape == (0, len(TOKENIZER))
    scores = rows.read([LONG[2:], SHORT[1:]], [3, 1])
    assert close(scores[:3], alone(language_model, LONG)[3:])
    assert close(scores[3], alone(language_model, SHORT)[-1])
    assert rows.lengths == [6, 3]


def test_copies_leave_the_rows_as_they_are(language_model):
    rows = CausalRows(language_model, 2, ForwardClock())
    rows.read([LONG, SHORT], [0, 0])
    copies = rows.chosen([1, 0, 1])
    scores = copies.read([[3], [4], [6, 7]], [1, 1, 1])
    for row, pieces in enumerate(([*SHORT, 3], [*LONG, 4], [*SHORT, 6, 7])):
        assert close(scores[row], alone(language_model, pieces)[-1])
    assert close(rows.read([[8], []], [1, 0])[0], alone(language_model, [*LONG, 8])[-1])


def test_what_is_taken_back_was_never_read(language_model):
    rows = CausalRows(language_model, 2, ForwardClock())
    rows.read([LONG, SHORT], [0, 0])
    rows.take_back([4, 0])
    scores = rows.read([[3], [4]], [1, 1])
    assert close(scores[0], alone(language_model, [*LONG[:2], 3])[-1])
    assert close(scores[1], alone(language_model, [*SHORT, 4])[-1])
    rows.take_back([3, 1])
    scores = rows.chosen([0, 1]).read([SHORT, [6]], [1, 1])
    assert close(scores[0], alone(language_model, SHORT)[-1])
    assert close(scores[1], alone(language_model, [*SHORT, 6])[-1])


def test_joined_rows_read_on(language_model):
    rows = CausalRows(language_model, 2, ForwardClock())
    rows.read([LONG, SHORT], [0, 0])
    parts = [rows.chosen([1]), rows.chosen([0])]
    parts[0].read([[7, 7, 7, 7, 7, 7]], [0])
    scores = joined(parts).read([[3], [4]], [1, 1])
    assert close(scores[0], alone(language_model, [*SHORT, *[7] * 6, 3])[-1])
    assert close(scores[1], alone(language_model, [*LONG, 4])[-1])


def test_holes_do_not_narrow_a_window(language_model):
    rows = CausalRows(language_model, 2, ForwardClock())
    rows.read([LONG, SHORT], [0, 0])
    for _ in range(12):
        rows.read([[7] * 5, []], [0, 0])
        rows.take_back([5, 0])
    scores = rows.read([[3], [4, 6]], [1, 2])
    assert close(scores[0], alone(language_model, [*LONG, 3])[-1])
    assert close(scores[1:], alone(language_model, [*SHORT, 4, 6])[-2:])
    assert rows.lengths == [7, 5]


def test_a_window_has_room_for_as_many_holes_as_pieces():
    for settings, window in [
        ({"sliding_window": 4096}, 4096),
        ({"sliding_window": 4096, "use_sliding_window": False}, None),
        ({"window_size": 256, "attention_chunk_size": 128}, 128),
        ({}, None),
    ]:
        config = SimpleNamespace(**settings)
        config.get_text_config = lambda decoder, config=config: config
        assert window_of(config) == window
    for name, positions in [("llama", 256), ("mistral", 24)]:
        assert CausalLanguageModel(MODELS[name](TOKENIZER), TOKENIZER, "tiny").positions == positions


def test_an_architecture_that_cannot_read_in_parts_is_refused():
    for model_type, options in [
        ("mamba", {"state_size": 4}),
        ("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "num_key_value_heads": 4}),
        ("recurrent_gemma", {"head_dim": 8, "lru_width": 32, "attention_window_size": 8, "num_hidden_layers": 3}),
        ("lfm2", {"layer_types": ["conv", "full_attention"]}),
    ]:
        for dtype in [torch.float32, torch.bfloat16]:
            model = random_causal_model(TOKENIZER, model_type, **options).to(dtype)
            with pytest.raises(ModelError, match=f"'tiny' .*'{model_type}'.* such as llama, gpt2, qwen2 or opt"):
                CausalLanguageModel(model, TOKENIZER, "tiny")


def test_rounding_to_16_bits_is_no_reason_to_refuse():
    for name in MODELS:
        CausalLanguageModel(MODELS[name](TOKENIZER).to(torch.bfloat16), TOKENIZER, "tiny")


def test_only_the_wanted_places_are_projected_to_the_vocabulary(language_model):
    projected = []
    head = language_model.model.get_output_embeddings()
    head.register_forward_hook(lambda module, given, output: projected.append(output.shape))
    CausalRows(language_model, 2, ForwardClock()).read([LONG, SHORT], [2, 1])
    assert projected == [(3, 1, len(TOKENIZER))]


def test_scores_that_are_not_numbers_stop_the_work(language_model):
    rows = CausalRows(language_model, 1, ForwardClock())
    with torch.no_grad():
        language_model.model.get_input_embeddings().weight[9] = float("nan")
    with pytest.raises(ModelError, match="not numbers"):
        rows.read([LONG], [1])


def test_rows_of_about_equal_length_are_read_together():
    for lengths, enough, groups in [
        ([3, 1, 2], 1, [[1], [2], [0]]),
        ([3, 1, 2], 100, [[1, 2, 0]]),
        ([5, 2, 2, 2, 9], 4, [[1, 2, 3], [0], [4]]),
        ([], 4, []),
    ]:
        assert length_groups(lengths, enough) == groups


def test_the_memory_of_a_piece_is_that_of_its_keys_and_values(language_model):
    rows = CausalRows(language_model, 2, ForwardClock())
    rows.read([LONG, LONG], [0, 0])
    kept = sum(part.nbytes for layer in rows._cache.layers for part in (layer.keys, layer.values))
    assert language_model.bytes_per_piece * 2 * len(LONG) == kept
    before = language_model.bytes_per_piece
    language_model.model.to(torch.bfloat16)
    assert language_model.bytes_per_piece * 2 == before
