"""Rows with kept keys and values give the scores of the whole sequence, whatever was read beside them."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from tiny_causal_models import causal_tokenizer, random_causal_model, random_gpt2, random_llama, random_opt

from tasks.errors import ModelError
from tasks.filling.causal_lm import rows as rows_module
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.rows import CausalRows, ForwardClock, joined, length_groups, window_of
from tasks.filling.masked_lm.marker_scores import scores_at

TOKENIZER = causal_tokenizer()
ROUNDING = 1e-4
"""Sums of the same float32 products in another order."""
LONG, SHORT = [5, 9, 12, 7, 30, 8], [5, 11, 40]


MODELS = {
    "llama": random_llama,
    "gpt2": random_gpt2,
    "opt": random_opt,
    "qwen2": partial(random_causal_model, model_type="qwen2"),
    # Windows of so few columns that a hole makes them wrong.
    "mistral": partial(random_causal_model, model_type="mistral", sliding_window=4),
    "gemma3": partial(random_causal_model, model_type="gemma3_text", sliding_window=4, head_dim=8),
    "gpt_neo": partial(
        random_causal_model, model_type="gpt_neo", window_size=4, attention_types=[[["global", "local"], 1]],
        num_layers=2, num_heads=4, num_key_value_heads=4,
    ),
    # A penalty for distance by column, by the mask.
    "mpt": partial(random_causal_model, model_type="mpt", d_model=32, n_heads=4, n_layers=2, num_key_value_heads=4),
    "bloom": partial(random_causal_model, model_type="bloom", n_head=4, n_layer=2, num_key_value_heads=4),
}  # fmt: skip


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


def test_a_hole_wider_than_the_window_changes_nothing(language_model):
    rows = CausalRows(language_model, 3, ForwardClock())
    rows.read([LONG * 3, SHORT, SHORT[:1]], [0, 0, 0])
    rows.take_back([0, 1, 0])
    scores = rows.read([[3], [4, 6, 4, 6], []], [1, 3, 0])
    assert close(scores[0], alone(language_model, [*LONG * 3, 3])[-1])
    assert close(scores[1:], alone(language_model, [*SHORT[:2], 4, 6, 4, 6])[-3:])
    rows.take_back([15, 2, 0])
    scores = rows.read([SHORT, [7], SHORT[1:]], [1, 1, 2])
    assert close(scores[0], alone(language_model, [*LONG[:4], *SHORT])[-1])
    assert close(scores[1], alone(language_model, [*SHORT[:2], 4, 6, 7])[-1])
    assert close(scores[2:], alone(language_model, SHORT)[1:])
    assert rows.lengths == [7, 5, 3]


def test_rows_that_are_too_long_side_by_side_are_read_apart():
    for name in ["gpt_neo", "mpt"]:
        places = {"max_seq_len": 24} if name == "mpt" else {}
        language_model = CausalLanguageModel(MODELS[name](TOKENIZER, positions=24, **places), TOKENIZER, "tiny")
        assert language_model.positions == 24
        rows = CausalRows(language_model, 4, ForwardClock())
        first = [LONG * 3, SHORT, LONG * 3 + SHORT, []]
        rows.read(first, [0, 0, 0, 0])
        scores = rows.read([[3], LONG * 3, [], []], [1, 2, 0, 0])
        assert close(scores[0], alone(language_model, [*first[0], 3])[-1])
        assert close(scores[1:], alone(language_model, [*first[1], *LONG * 3])[-2:])
        scores = rows.read([[4], [4], [4], SHORT], [1, 1, 1, 1])
        for row, pieces in enumerate(([*first[0], 3, 4], [*first[1], *LONG * 3, 4], [*first[2], 4], SHORT)):
            assert close(scores[row], alone(language_model, pieces)[-1])


def test_holes_are_closed_only_where_columns_count():
    found = {
        name: CausalLanguageModel(model(TOKENIZER), TOKENIZER, "tiny").closed_from for name, model in MODELS.items()
    }
    counted = {"mistral": 4, "gemma3": 4, "gpt_neo": 4, "mpt": 0, "bloom": 0}
    assert found == dict.fromkeys(("llama", "gpt2", "opt", "qwen2")) | counted


def test_the_narrowest_window_of_a_configuration():
    for settings, window in [
        ({"sliding_window": 4096}, 4096),
        ({"sliding_window": 4096, "use_sliding_window": False}, None),
        ({"sliding_window": None}, None),
        ({"window_size": 256, "attention_chunk_size": 128}, 128),
        ({"attention_window": [512, 64]}, 64),
        ({}, None),
    ]:
        assert window_of(SimpleNamespace(**settings)) == window


def test_a_model_that_counts_columns_unsaid_is_found_out(monkeypatch):
    model = MODELS["mistral"](TOKENIZER)
    monkeypatch.setattr(rows_module, "_WINDOWS", ())
    language_model = CausalLanguageModel(model, TOKENIZER, "tiny")
    assert language_model.closed_from == 0


def test_an_architecture_with_a_recurrent_state_is_refused():
    for model_type, options in [
        ("rwkv", {"attention_hidden_size": 32}),
        ("mamba", {"state_size": 4}),
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


def test_a_model_whose_body_cannot_be_told_gives_the_scores_of_the_wanted_places(monkeypatch):
    model = random_llama(TOKENIZER)
    expected = model(torch.tensor([LONG, LONG[::-1]])).logits[[0, 1], [3, 5]]
    monkeypatch.setattr(type(model), "base_model_prefix", "no_such_part")
    rows, columns = torch.tensor([0, 1]), torch.tensor([3, 5])
    found = scores_at(model, rows, columns, input_ids=torch.tensor([LONG, LONG[::-1]]))
    assert close(found, expected)


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
