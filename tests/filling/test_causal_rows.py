"""Fills in parts: rows of kept keys and values, and sentences that the model writes freely."""

from functools import partial

import pytest
import torch
from tiny_causal_models import (
    causal_tokenizer,
    llama_of_last_piece,
    random_causal_model,
    random_gpt2,
    random_llama,
    random_opt,
)

from tasks.errors import ModelError
from tasks.filling.causal_lm.free import Alignment, FreeFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.prompts import CausalPrompt
from tasks.filling.causal_lm.rows import CausalRows, ForwardClock, joined
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.free import Free
from tasks.filling.methods.unigram import UnigramFiller

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


INSTRUCTION = "Predict the [MASK] tokens"
ALWAYS = {"Ċ": "Tom", "Tom": "Ġran", "Ġran": "Ġto", "Ġto": "Ġthe", "Ġthe": "Ġred", "Ġred": "Ġhouse", "Ġhouse": "</s>"}
"""A model that writes "Tom ran to the red house" whatever it is given."""


def writer(**more):
    scores = {last: {following: 9.0, **more.get(last.strip("Ġ"), {})} for last, following in ALWAYS.items()}
    return llama_of_last_piece(TOKENIZER, scores)


def sentences(*lines):
    return [read_masked_line(line, number, merge_markers=True) for number, line in enumerate(lines, start=1)]


def unigram(word="word"):
    return UnigramFiller({None: WordFrequencies.of([(word, 1)])}, MarkerRandomness(1))


def free(model, **settings):
    language_model = CausalLanguageModel(model, TOKENIZER, "tiny", instruction=INSTRUCTION)
    return FreeFiller(language_model, Free(kind="free", **settings), MarkerRandomness(1), unigram())


def words(filler, *lines):
    return [[fill.word for fill in fills] for fills in filler.fill(sentences(*lines), lambda slots: None)]


def test_the_words_at_the_markers_are_taken_and_other_sentences_handed_over():
    filler = free(writer(), attempts=0)
    lines = ("Tom ran to the [MASK] house", "[MASK] ran to the red [MASK]", "Ann ran to the [MASK] house", "none", "")
    assert words(filler, *lines) == [["red"], ["Tom", "house"], ["word"], [], []]
    counts = filler.counts
    assert (counts["free_sentences"], counts["free_malformed"], counts["free_handed_over"]) == (3, 1, 1)
    fills = filler.fill(sentences(*lines), lambda slots: None)
    assert [[fill.fallback for fill in line] for line in fills] == [[False], [False, False], [True], [], []]


def test_a_further_attempt_may_succeed():
    # "the" is followed by "red" at best, and by "cat" nearly as often.
    model = writer(the={"Ġcat": 8.9})
    with torch.no_grad():
        model.lm_head.weight[TOKENIZER.eos_token_id, TOKENIZER.get_vocab()["Ġcat"]] = 9.0
    lines = ["[MASK] ran to the cat"] * 20
    assert words(free(model, attempts=0), *lines) == [["word"]] * 20
    filler = free(model, attempts=1, temperature=1.0)
    written = words(filler, *lines)
    rewritten = filler.counts["free_rewritten"]
    assert 3 <= rewritten <= 17
    assert sum(line == ["Tom"] for line in written) == rewritten
    assert filler.counts["free_malformed"] == 20
    assert filler.counts["free_handed_over"] == 20 - rewritten
    assert written == words(free(model, attempts=1, temperature=1.0, batch_sentences=3), *lines)


def by_generate(language_model, sentence, longest):
    prompt = CausalPrompt(language_model, INSTRUCTION)
    pieces = torch.tensor([[*prompt.head, *prompt.inputs([sentence.texts])[0]]])
    written = language_model.model.generate(
        input_ids=pieces, attention_mask=torch.ones_like(pieces), do_sample=False, max_new_tokens=longest,
        eos_token_id=[language_model.end, *language_model.anchor], pad_token_id=language_model.padding,
    )[0, pieces.shape[1] :].tolist()  # fmt: skip
    return language_model.decode(written).partition("\n")[0], written


@pytest.mark.parametrize("model", [random_gpt2(TOKENIZER), writer()], ids=["random", "fixed"])
def test_the_outcome_is_that_of_generate(model):
    language_model = CausalLanguageModel(model, TOKENIZER, "tiny", instruction=INSTRUCTION)
    given = sentences("Tom ran to the [MASK] house", "Ann [MASK].", "[MASK] ran to the [MASK] house", "the [MASK] sat")
    texts, pieces = zip(*(by_generate(language_model, sentence, 24) for sentence in given), strict=True)
    # What the model writes, with one word masked, is what it writes rightly if it does not look at its prompt.
    filler = free(model)
    expected = [Alignment(s.texts).words(text) for s, text in zip(given, texts, strict=True)]
    found, written = map(list, zip(*filler.write(filler.encode(given)), strict=True))
    assert found == expected
    assert all(written)
    assert written == [theirs[: len(ours)] for ours, theirs in zip(written, pieces, strict=True)]
    if model.config.tie_word_embeddings is False:
        assert [item is None for item in expected] == [False, True, False, True]


def test_too_long_for_the_positions_goes_to_the_fallback():
    filler = free(random_llama(TOKENIZER, positions=64))
    assert words(filler, "the cat sat on the mat " * 9 + "[MASK]") == [["word"]]
    assert filler.counts["free_too_long"] == 1
