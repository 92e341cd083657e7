"""A sentence has the same probability as a text, among hypotheses that share its prefixes, and word by word."""

from random import Random

import numpy as np
import pytest
import torch
from tiny_language_models import TEXT, WORDS, save_causal, save_ngram, save_transformer

from tasks.errors import ModelError
from tasks.language_model.language_models import Drawing
from tasks.language_model.learners import batches
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.opening import open_language_model, open_learner
from tasks.language_model.transformer.model import load_model
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID


def some_hypotheses():
    """Distinct hypotheses as a recogniser makes them: of each sentence, variants in a word or two; one is empty."""
    dice, words = Random(1), [*WORDS, "bob", "zed"]
    found = [[()]]
    for length in range(1, 9):
        first = dice.choices(words, k=length)
        variants = {tuple(first)}
        for _ in range(6):
            place = dice.randrange(length)
            variants.add((*first[:place], *dice.choices(words, k=dice.randrange(3)), *first[place + 1 :]))
        found.append(sorted(variants))
    return found


def check_agreement(model, groups):
    """Text, sentences and next words say the same, and what may follow has the probability 1; of a model of words."""
    by_sentence, following = model.score_sentences(groups), model.next_words()
    following.start(np.arange(len(following.vocabulary)))
    for group, sums in zip(groups, by_sentence, strict=True):
        for words, expected in zip(group, sums, strict=True):
            history = np.array([0])
            scores, _ = model.score_text([" ".join(words)])
            tokens = [*following.vocabulary.encode(words), END_ID]
            for token, of_text in zip(tokens, scores.log_probability, strict=True):
                assert float(following.scores(history).log_softmax(1)[0, token]) == pytest.approx(of_text, abs=1e-4)
                history = following.extend(history, np.array([token]))
            assert scores.log_probability.sum() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("make", [save_transformer, save_ngram])
def test_models_of_words(tmp_path, make):
    groups = [[words for words in group if words] for group in some_hypotheses()]
    # Longer than the Transformer's 12 positions, so read in windows; and one with another unknown word, the same score.
    groups.append([("the", "bob"), ("the", "zed"), tuple(WORDS) * 3])
    model = open_language_model(make(tmp_path / "model"))
    found = model.score_sentences(groups)
    assert found[-1][0] == found[-1][1]
    assert model.unknown_words(("the", "bob", "zed")) == 2
    check_agreement(model, groups)


@pytest.fixture(scope="module", params=["llama", "gpt2", "bloom"])
def causal(request, tmp_path_factory):
    folder = save_causal(tmp_path_factory.mktemp(request.param), request.param)
    assert kind_of_model(folder) == "causal_lm"
    scorer = open_language_model(folder)
    # BLOOM knows no positions but by the distance in the row, so its hypotheses are scored one by one.
    assert scorer.shares_prefixes == (request.param != "bloom")
    return scorer


def test_causal_models(causal):
    """Against a plain forward pass of each sentence."""
    groups, pieces_of = some_hypotheses(), causal.pieces
    found = causal.score_sentences(groups)
    for group, scores in zip(groups, found, strict=True):
        expected = []
        for words in group:
            inside = [*(p for word in pieces_of.of_words(words) for p in word), *pieces_of.end]
            with torch.inference_mode():
                pieces = torch.tensor([[*pieces_of.start, *inside]])
                logits = causal.network(input_ids=pieces).logits[0, -len(inside) - 1 : -1].log_softmax(1)
            expected.append(float(logits.double()[torch.arange(len(inside)), inside].sum()))
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert causal.unknown_words(("zed",)) == 0


def test_long_sentences_of_causal_models(causal):
    """The last sentence is too long for 64 pieces, so it is read in windows."""
    sentences = [("the", "cat"), ("the", "cat", "saw", "anna's", "dog"), ("the", "dog"), (), ("zed",), ("the",) * 30]
    (expected,) = causal.score_sentences([[*sentences, ("the", *["zed"] * 30)]])
    np.testing.assert_allclose(expected, causal._one_by_one([[*sentences, ("the", *["zed"] * 30)]])[0], atol=1e-4)
    with pytest.raises(ModelError, match="gives no probability to beginnings of words"):
        causal.next_words()


# Sentences that models write by themselves --------------------------------------------------------------------------

NUMBER, ALL = 600, 1000


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


# Models as ways to forget see them --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [save_transformer, lambda folder: save_causal(folder, "llama")], ids=["transformer", "causal_lm"]
)
def test_joined_and_steered_models_say_what_their_formulas_say(tmp_path, make):
    """The weighted sum of what each says; the last hidden states moved by ``up`` of ``down`` of themselves."""
    one = open_learner(make(tmp_path))
    other = one.copy()
    with torch.no_grad():
        for parameter in other.network.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    marked = one.encode(TEXT)
    batch, _ = next(batches(marked, one.longest, 10_000, 1))

    def said(learner):
        with torch.no_grad():
            return learner.scores(batch).log_softmax(1)

    both = one.joined([(other, -0.5)], 1.5)
    torch.testing.assert_close(said(both), (1.5 * said(one) - 0.5 * said(other)).log_softmax(1), atol=1e-4, rtol=1e-4)
    # By the scorer too, which shares prefixes: the sums of sentences are those of a text.
    (sums,) = both.scorer().score_sentences([[tuple(line.split()) for line in TEXT]])
    alone = np.add.reduceat(both.log_probabilities(marked), marked.text.offsets[:-1])
    np.testing.assert_allclose(sums, alone, rtol=1e-3)
    states = one.states(batch)
    down, up = torch.randn(states.shape[1], 3), torch.randn(3, states.shape[1])
    expected = one.scores_of(states + states @ down @ up).log_softmax(1).detach()
    torch.testing.assert_close(said(one.steered(down, up)), expected, atol=1e-4, rtol=1e-4)
