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
        expected = first[vocabulary.ids[word]]
        share = sum(words[:1] == (word,) for words in found) / NUMBER
        assert share == pytest.approx(expected, abs=4 * 0.5 / NUMBER**0.5)
        alone = expected * next_one(word)[END_ID]
        assert found.count((word,)) / NUMBER == pytest.approx(alone, abs=4 * (alone / NUMBER) ** 0.5 + 1e-3)
    assert max(map(len, found)) == 14
    assert {word for words in found for word in words} == set(WORDS)


def test_a_causal_model_writes_pieces_up_to_the_end_of_a_line(tmp_path):
    model = open_language_model(save_causal(tmp_path, "llama"))
    pieces = model.pieces
    (line_end,) = pieces.end
    wanted = [line_end, *(piece for (piece,) in pieces.of_words(["the", "cat", "dog"]))]

    def write_nothing_else(module, given, output):
        nothing = torch.full_like(output.logits, -torch.inf)
        output.logits = nothing.index_copy(2, torch.tensor(wanted), output.logits[..., wanted])

    model.network.register_forward_hook(write_nothing_else)

    def next_one(*words):
        read = torch.tensor([[*pieces.start, *(piece for (piece,) in pieces.of_words(list(words)))]])
        return model.network(input_ids=read).logits[0, -1, wanted].softmax(0).tolist()

    found = model.sample(Drawing(NUMBER, ALL, 10, seed=1))
    sentence, chance, expected = ("the", "cat", "dog"), 1.0, {}
    for length in range(4):
        following = next_one(*sentence[:length])
        expected[sentence[:length]] = chance * following[0]
        chance *= following[min(length, 2) + 1]
    shares = {words: found.count(words) / NUMBER for words in expected}
    assert shares == pytest.approx(expected, abs=4 * 0.5 / NUMBER**0.5)
    assert {word for words in found for word in words} == {"the", "cat", "dog"}
    assert max(map(len, found)) <= 10
    assert len(set(model.sample(Drawing(100, 1, 10, seed=1)))) == 1


@pytest.mark.parametrize("make", [save_ngram, save_transformer, lambda folder: save_causal(folder, "llama")])
def test_models_of_every_kind_go_on_from_a_prompt(tmp_path, make):
    folder, prompts = make(tmp_path), [("a", "dog"), ("the", "cat", "sat", "on")]
    both = open_language_model(folder).sample(Drawing(50, ALL, 4, seed=1, prompts=prompts, nucleus=0.9))
    assert len(both) == 100
    assert both == open_language_model(folder).sample(Drawing(50, ALL, 4, seed=1, prompts=prompts, nucleus=0.9))
    if make == save_ngram:
        # The only words of the model's text behind these.
        found = open_language_model(folder).sample(Drawing(200, ALL, 4, seed=1, prompts=prompts, nucleus=0.5))
        assert {words[:1] for words in found[:200]} == {("saw",)}
        assert {words[:1] for words in found[200:]} <= {("the",), ("a",)}
