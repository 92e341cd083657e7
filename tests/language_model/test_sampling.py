"""Sentences that models write by themselves have the probabilities that the models give them."""

import pytest
import torch
from tiny_language_models import WORDS, save_causal, save_ngram, save_transformer

from tasks.language_model.language_models import Drawing
from tasks.language_model.opening import open_language_model
from tasks.language_model.transformer.model import load_model
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID

NUMBER, ALL = 1500, 1000


def test_a_transformer_writes_what_a_plain_forward_pass_says(tmp_path):
    folder = save_transformer(tmp_path)
    model, vocabulary = load_model(folder)
    found = open_language_model(folder).sample(Drawing(NUMBER, ALL, 14, seed=1))  # longer than its 12 positions

    def next_one(*words):
        logits = model.logits(torch.tensor([[START_ID, *vocabulary.encode(words)]]))[0, -1].detach()
        logits[[token for token in range(len(SPECIAL_TOKENS)) if token != END_ID]] = -torch.inf
        return logits.double().softmax(0).tolist()

    first = next_one()
    for word in WORDS:
        of_word = sum(words[:1] == (word,) for words in found)
        expected = first[vocabulary.ids[word]]
        assert of_word / NUMBER == pytest.approx(expected, abs=4 * 0.5 / NUMBER**0.5)
        alone = expected * next_one(word)[END_ID]
        assert found.count((word,)) / NUMBER == pytest.approx(alone, abs=4 * (alone / NUMBER) ** 0.5 + 1e-3)
    assert max(map(len, found)) == 14


def test_a_causal_model_writes_pieces_up_to_the_end_of_a_line(tmp_path):
    model = open_language_model(save_causal(tmp_path, "llama"))
    causal = model.causal
    (line_end,) = causal.pieces.end
    assert line_end in causal.pieces.line_ends
    wanted = [line_end, *(piece for (piece,) in causal.pieces.of_words(["the", "cat", "dog"]))]

    def write_nothing_else(module, given, output):
        output.logits = torch.full_like(output.logits, -torch.inf).index_copy(
            2, torch.tensor(wanted), output.logits[..., wanted]
        )

    causal.model.register_forward_hook(write_nothing_else)

    def next_one(*words):
        pieces = [*causal.pieces.start, *(piece for (piece,) in causal.pieces.of_words(list(words)))]
        return causal.model(input_ids=torch.tensor([pieces])).logits[0, -1, wanted].softmax(0).tolist()

    found = model.sample(Drawing(NUMBER, ALL, 10, seed=1))
    shares = {words: found.count(words) / NUMBER for words in [(), ("the",), ("the", "cat"), ("the", "cat", "dog")]}
    first, second, third = next_one(), next_one("the"), next_one("the", "cat")
    expected = {
        (): first[0],
        ("the",): first[1] * second[0],
        ("the", "cat"): first[1] * second[2] * third[0],
        ("the", "cat", "dog"): first[1] * second[2] * third[3] * next_one("the", "cat", "dog")[0],
    }
    assert shares == pytest.approx(expected, abs=4 * 0.5 / NUMBER**0.5)
    assert {word for words in found for word in words} == {"the", "cat", "dog"}
    assert max(map(len, found)) <= 10
    assert len(set(model.sample(Drawing(100, 1, 10, seed=1)))) == 1


def test_models_of_every_kind_go_on_from_a_prompt(tmp_path):
    prompts = [("a", "dog"), ("the", "cat", "sat", "on")]
    for kind, folder in {
        "ngram": save_ngram(tmp_path / "ngram"),
        "transformer": save_transformer(tmp_path / "transformer"),
        "llama": save_causal(tmp_path / "llama", "llama"),
    }.items():
        model = open_language_model(folder)
        both = model.sample(Drawing(50, ALL, 4, seed=1, prompts=prompts, nucleus=0.9))
        assert len(both) == 100, kind
        assert both == open_language_model(folder).sample(Drawing(50, ALL, 4, seed=1, prompts=prompts, nucleus=0.9))
    # The only words of the n-gram model's text behind these.
    found = open_language_model(tmp_path / "ngram").sample(Drawing(200, ALL, 4, seed=1, prompts=prompts, nucleus=0.5))
    assert {words[:1] for words in found[:200]} == {("saw",)}
    assert {words[:1] for words in found[200:]} <= {("the",), ("a",)}
