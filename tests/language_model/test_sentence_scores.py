"""Scores of hypotheses with shared prefixes are those of the language models' own code, sentence by sentence."""

import numpy as np
import pytest
import torch
from tiny_language_models import WORDS, save_causal, save_ngram, save_transformer, some_hypotheses

from tasks.language_model.causal_lm.next_words import BEGINNING, WholeWords
from tasks.language_model.causal_lm.scoring import CausalScorer
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.opening import open_language_model

MAKERS = {"transformer": save_transformer, "ngram": save_ngram}


def own_scores(model: str, hypothesis: tuple[str, ...], folder) -> float:
    """What 'palimpsest perplexity' gives a text of this one sentence."""
    path = folder / "one.txt"
    path.write_text(" ".join(hypothesis) + "\n", encoding="utf-8")
    return float(open_language_model(model).score_text(path)[0].log_probability.sum())


@pytest.mark.parametrize("kind", MAKERS)
def test_as_the_models_own_code(tmp_path, kind):
    model = MAKERS[kind](tmp_path / "model")
    groups = [[words for words in group if words] for group in some_hypotheses(6)]
    # Longer than the Transformer's 12 positions, so read in windows; and one with another unknown word, the same score.
    long = tuple(WORDS) * 3
    groups.append([("the", "bob"), ("the", "zed"), long])
    scorer = open_language_model(model)
    found = scorer.score_sentences(groups)
    for group, scores in zip(groups, found, strict=True):
        expected = [own_scores(model, words, tmp_path) for words in group]
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert found[-1][0] == found[-1][1]
    assert scorer.unknown_words(("the", "bob", "zed")) == 2


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bloom"])
def test_causal_models_by_folder(tmp_path, kind):
    model = save_causal(tmp_path / "model", kind)
    groups = some_hypotheses(6)
    groups.append([("the", *["zed"] * 30), ("the", "cat")])  # 64 pieces are not enough for the first
    scorer = open_language_model(model)
    # BLOOM knows no positions but by the distance in the row, so its hypotheses are scored one by one.
    assert scorer.shares_prefixes == (kind != "bloom")
    tree, tokenizer = scorer.score_sentences(groups), scorer.causal.pieces
    for group, scores in zip(groups[:-1], tree[:-1], strict=True):
        expected = []
        for words in group:
            pieces = [*tokenizer.start, *(p for word in tokenizer.of_words(words) for p in word), *tokenizer.end]
            with torch.inference_mode():
                logits = scorer.causal.model(input_ids=torch.tensor([pieces])).logits[0].log_softmax(1).double()
            first = len(tokenizer.start)
            places = torch.arange(first - 1, len(pieces) - 1)
            expected.append(float(logits[places, torch.tensor(pieces[first:])].sum()))
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    np.testing.assert_allclose(tree[-1], scorer._one_by_one([groups[-1]])[0], atol=1e-4)
    assert scorer.unknown_words(("zed",)) == 0


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def causal(request, tmp_path_factory):
    torch.set_num_threads(1)
    folder = save_causal(tmp_path_factory.mktemp(request.param), request.param)
    assert kind_of_model(folder) == "causal_lm"
    return CausalScorer.load(folder)


SENTENCES = [("the", "cat"), ("the", "cat", "saw", "anna's", "dog"), ("the", "dog"), (), ("zed",), ("the",) * 30]


def test_sentences_cost_what_rescoring_says(causal):
    words = WholeWords(causal)
    words.start()
    histories = []
    for sentence in SENTENCES:
        history = BEGINNING
        for word in sentence:
            history = words.extend(history, word)
            if len(histories) % 2:
                words.read(np.array([history]))
        histories.append(history)
    ends = words.sentence_ends(np.array(histories))
    (expected,) = causal.score_sentences([SENTENCES])
    assert words.values(np.array(histories)) + ends == pytest.approx(expected, abs=1e-3)
    assert words.extend(words.extend(BEGINNING, "the"), "cat") == histories[0]
    # After the model's window of 64 positions a sentence begins again, so one of 100 words has a probability.
    history = BEGINNING
    for _ in range(100):
        history = words.extend(history, "dog")
    found = np.array([history])
    ends = words.sentence_ends(found)
    assert np.isfinite(words.values(found) + ends)
