"""A sentence has the same probability as a text, among hypotheses that share its prefixes, and word by word."""

from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_language_models import WORDS, save_causal, save_ngram, save_transformer

from tasks.language_model.causal_lm.next_words import BEGINNING, WholeWords
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.opening import open_language_model
from tasks.language_model.prefix_trees import prefix_tree, score_groups
from tasks.language_model.vocabulary import END_ID


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


def test_whole_words_of_causal_models(causal):
    """The last sentence is too long for 64 pieces, so it is read in windows."""
    sentences = [("the", "cat"), ("the", "cat", "saw", "anna's", "dog"), ("the", "dog"), (), ("zed",), ("the",) * 30]
    (expected,) = causal.score_sentences([[*sentences, ("the", *["zed"] * 30)]])
    np.testing.assert_allclose(expected, causal._one_by_one([[*sentences, ("the", *["zed"] * 30)]])[0], atol=1e-4)
    if not causal.shares_prefixes:
        return
    words, histories = WholeWords(causal), []
    words.start()
    for sentence in sentences:
        history = BEGINNING
        for word in sentence:
            history = words.extend(history, word)
            if len(histories) % 2:
                words.read(np.array([history]))
        histories.append(history)
    ends = words.sentence_ends(np.array(histories))
    assert words.values(np.array(histories)) + ends == pytest.approx(expected[:-1], abs=1e-3)
    assert words.extend(words.extend(BEGINNING, "the"), "cat") == histories[0]
    # After the model's window a sentence begins again, so one of 100 words has a probability.
    history = BEGINNING
    for _ in range(100):
        history = words.extend(history, "dog")
    ends = words.sentence_ends(np.array([history]))
    assert np.isfinite(words.values(np.array([history])) + ends)


END = 9
SEQUENCES = st.lists(
    st.lists(st.integers(1, 4), max_size=7).map(lambda inner: (0, *inner, END)), min_size=1, max_size=12, unique=True
)


@settings(max_examples=50, deadline=None)
@given(st.lists(SEQUENCES, min_size=1, max_size=4), st.integers(1, 12))
def test_sums_over_prefix_trees_are_those_of_single_sequences_however_trees_are_divided(groups, most_nodes):
    """Every node sees the prefix that it stands for."""

    def score(prefix, token):
        # Any function of the whole prefix and the next token.
        return float((sum((place + 1) * part for place, part in enumerate(prefix)) * 31 + token) % 101)

    def scores_of(batch):
        width, visible = batch.tokens.shape[1], batch.visible
        places = [divmod(place, width) for place in batch.edge_place.tolist()]
        prefixes = [batch.tokens[row][visible[row, place]].tolist() for row, place in places]
        return np.array([score(*edge) for edge in zip(prefixes, batch.edge_token.tolist(), strict=True)])

    found = score_groups(groups, scores_of, batch_nodes=8, most_nodes=most_nodes)
    for group, sums in zip(groups, found, strict=True):
        assert sums.tolist() == [sum(score(one[:n], one[n]) for n in range(1, len(one))) for one in group]
        prefixes = {one[:length] for one in group for length in range(1, len(one))}
        assert len(prefix_tree(group)) == len(prefixes), "each prefix is computed once"
