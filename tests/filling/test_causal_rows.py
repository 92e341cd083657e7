"""Rows with kept keys and values give the scores of the whole sequence, whatever was read beside them."""

from functools import partial

import pytest
import torch
from tiny_causal_models import causal_tokenizer, random_causal_model, random_gpt2, random_llama, random_opt

from tasks.errors import ModelError
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.rows import CausalRows, ForwardClock, joined

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


def test_an_architecture_that_cannot_read_in_parts_is_refused():
    for model_type, options in [
        ("mamba", {"state_size": 4}),
        ("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "num_key_value_heads": 4}),
        ("lfm2", {"layer_types": ["conv", "full_attention"]}),
    ]:
        model = random_causal_model(TOKENIZER, model_type, **options)
        with pytest.raises(ModelError, match=f"'tiny' .*'{model_type}'.* such as llama, gpt2, qwen2 or opt"):
            CausalLanguageModel(model, TOKENIZER, "tiny")


@pytest.mark.parametrize("name", MODELS)
def test_rows_give_the_scores_of_the_whole_sequence(name):
    """Of different lengths, read on, taken back, chosen again; and scores that are no numbers stop the work."""
    language_model = CausalLanguageModel(MODELS[name](TOKENIZER), TOKENIZER, "tiny")

    def close(found, pieces):
        with torch.inference_mode():
            whole = language_model.model(input_ids=torch.tensor([pieces])).logits[0]
        return torch.allclose(found, whole[-1], atol=ROUNDING)

    rows = CausalRows(language_model, 2, ForwardClock())
    assert rows.read([LONG[:2], SHORT[:1]], [0, 0]).shape == (0, len(TOKENIZER))
    scores = rows.read([LONG[2:], SHORT[1:]], [3, 1])
    assert close(scores[0], LONG[:4])
    assert close(scores[2], LONG)
    assert close(scores[3], SHORT)
    for _ in range(12):  # holes do not narrow a window
        rows.read([[7] * 5, []], [0, 0])
        rows.take_back([5, 0])
    rows.take_back([4, 0])
    scores = rows.read([[3], [4]], [1, 1])
    assert close(scores[0], [*LONG[:2], 3])
    assert close(scores[1], [*SHORT, 4])
    rows.take_back([1, 1])
    parts = [rows.chosen([1]), rows.chosen([0])]
    parts[0].read([[7] * 6], [0])
    scores = joined(parts).read([[6], SHORT], [1, 1])
    assert close(scores[0], [*SHORT, *[7] * 6, 6])
    assert close(scores[1], [*LONG[:2], *SHORT])
    with torch.no_grad():
        language_model.model.get_input_embeddings().weight[9] = float("nan")
    with pytest.raises(ModelError, match="not numbers"):
        rows.read([[9], [9]], [1, 1])
