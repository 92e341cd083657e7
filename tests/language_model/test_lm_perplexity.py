"""Perplexities with answers known by hand, and against an independent computation."""

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_transformer import as_gpt2

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.perplexity import measure_perplexity, signature_of
from tasks.language_model.scoring import score_sentences
from tasks.language_model.settings import EvaluationSettings
from tasks.language_model.transformer import TransformerLanguageModel
from tasks.language_model.vocabulary import END_ID, START_ID, UNKNOWN_ID, Vocabulary

SETTINGS = EvaluationSettings(bootstrap_samples=200)


def measured(model, text: EncodedText) -> dict:
    return measure_perplexity(score_sentences(model, text), text, SETTINGS, "signature")


class BigramModel(torch.nn.Module):
    """Next-token log-probabilities in a table (V, V): a token's hidden state is its row."""

    def __init__(self, table: torch.Tensor, maximum_tokens: int = 6):
        super().__init__()
        self.table = table
        self.embedding = SimpleNamespace(weight=torch.eye(len(table)))
        self.architecture = SimpleNamespace(maximum_tokens=maximum_tokens)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table[tokens]


@pytest.fixture
def bigram(vocabulary: Vocabulary) -> BigramModel:
    """<s> then a or b, each 1/2; a then b 3/4 or </s> 1/4; b then </s> 1/2, <unk> 1/4 or a 1/4; <unk> then b."""
    size, (a, b) = len(vocabulary), (vocabulary.ids["a"], vocabulary.ids["b"])
    probabilities = torch.zeros(size, size)
    probabilities[START_ID, [a, b]] = 0.5
    probabilities[a, b], probabilities[a, END_ID] = 0.75, 0.25
    probabilities[b, END_ID], probabilities[b, UNKNOWN_ID], probabilities[b, a] = 0.5, 0.25, 0.25
    probabilities[UNKNOWN_ID, b] = 1.0
    return BigramModel(probabilities.clamp(min=1e-30).log())


def test_a_uniform_model_has_the_size_of_its_vocabulary_as_perplexity(
    encoded: Callable[..., EncodedText], small_model: Callable[..., TransformerLanguageModel], vocabulary: Vocabulary
) -> None:
    model = small_model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    values = measured(model, encoded(["a b c", "d unheard", "a b c d a b c d a b c d"]))
    assert values["perplexity"] == pytest.approx(len(vocabulary), rel=1e-6)
    assert values["perplexity_known"] == pytest.approx(len(vocabulary), rel=1e-6)
    assert values["perplexity_ci"] == pytest.approx([len(vocabulary)] * 2, rel=1e-6)


def test_a_bigram_model_by_hand(encoded: Callable[..., EncodedText], bigram: BigramModel) -> None:
    # a b </s>: 1/2 * 3/4 * 1/2 = 3/16.  b <unk> b </s>: 1/2 * 1/4 * 1 * 1/2 = 1/16, without <unk> 1/4.
    text = encoded(["a b", "", "b unheard b"])
    scores = score_sentences(bigram, text)  # type: ignore[arg-type]
    assert scores.line.tolist() == [1, 3]
    assert scores.targets.tolist() == [3, 4]
    assert scores.known_targets.tolist() == [3, 3]
    np.testing.assert_allclose(np.exp(scores.log_probability), [3 / 16, 1 / 16], rtol=1e-6)
    np.testing.assert_allclose(np.exp(scores.known_log_probability), [3 / 16, 1 / 4], rtol=1e-6)
    values = measured(bigram, text)
    assert values["perplexity"] == pytest.approx((3 / 256) ** (-1 / 7), rel=1e-6)
    assert values["perplexity_known"] == pytest.approx((3 / 64) ** (-1 / 6), rel=1e-6)
    assert values["oov_rate"] == pytest.approx(1 / 5)
    assert (values["words"], values["targets"], values["targets_known"]) == (5, 7, 6)
    assert (values["sentences"], values["empty_lines"]) == (2, 1)


def test_a_long_sentence_is_scored_whole(encoded: Callable[..., EncodedText], bigram: BigramModel) -> None:
    # a b repeated 20 times: 1/2 * (3/4)^20 * (1/4)^19 * 1/2, in windows of 6 positions
    scores = score_sentences(bigram, encoded(["a b " * 20]))  # type: ignore[arg-type]
    assert scores.targets.tolist() == [41]
    expected = 2 * math.log(1 / 2) + 20 * math.log(3 / 4) + 19 * math.log(1 / 4)
    assert scores.log_probability[0] == pytest.approx(expected, rel=1e-6)


def test_sentences_are_scored_each_by_itself(
    encoded: Callable[..., EncodedText], small_model: Callable[..., TransformerLanguageModel]
) -> None:
    model, lines = small_model(), ["a b c", "d", "b b a c a", "c d"]
    together = score_sentences(model, encoded(lines)).log_probability
    alone = [score_sentences(model, encoded([line])).log_probability[0] for line in lines]
    np.testing.assert_allclose(together, alone, rtol=1e-5)


def test_parity_with_a_computation_through_hugging_face(
    encoded: Callable[..., EncodedText], small_model: Callable[..., TransformerLanguageModel]
) -> None:
    model = small_model(seed=4, maximum_tokens=16)
    with torch.no_grad():
        model.embedding.weight.mul_(20)
    text = encoded(["a b c d", "b unheard a", "d d d a b c a b c d a", "c"])
    peer, total, count = as_gpt2(model), 0.0, 0
    for begin, end in zip(text.offsets[:-1], text.offsets[1:], strict=True):
        tokens = torch.from_numpy(text.tokens[begin:end].astype(np.int64))[None]
        # Hugging Face's own loss: the mean over the targets, which are the tokens shifted by one.
        total += peer(tokens, labels=tokens).loss.item() * (tokens.shape[1] - 1)
        count += tokens.shape[1] - 1
    assert measured(model, text)["perplexity"] == pytest.approx(math.exp(total / count), rel=1e-4)


def test_the_signature_says_what_was_measured(vocabulary: Vocabulary) -> None:
    assert signature_of(vocabulary, 128) == (
        f"ppl|unit=word|norm=v1|vocab={vocabulary.hash[:8]}|eos=yes|unk=in|context=sentence|window=128|stride=64"
        "|markers=in_vocabulary"
    )


def test_one_sentence_has_no_interval(encoded: Callable[..., EncodedText], bigram: BigramModel) -> None:
    values = measured(bigram, encoded(["a b"]))
    assert values["perplexity"] == pytest.approx((16 / 3) ** (1 / 3), rel=1e-6)
    assert values["perplexity_ci"] is None
