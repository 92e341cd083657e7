"""Perplexities with answers known by hand, and against an independent computation."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from test_transformer import as_gpt2

from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.language_model.encoded_text import EncodedText, encode_text
from tasks.language_model.evaluation.perplexity import measure_perplexity, sentence_scores
from tasks.language_model.evaluation.reference_text import ReferenceText, read_reference_text
from tasks.language_model.settings import EvaluationSettings
from tasks.language_model.transformer.scoring import score_targets
from tasks.language_model.vocabulary import END_ID, START_ID, UNKNOWN_ID, Vocabulary


class Text(NamedTuple):
    encoded: EncodedText
    reference: ReferenceText


@pytest.fixture
def text(tmp_path, vocabulary):
    """Writes lines and reads them as a model does and as an evaluation does."""

    def make(lines, masked=None):
        path = tmp_path / "text.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        sidecars = {technique: tmp_path / f"{technique}.jsonl" for technique in masked or {}}
        for technique, sidecar in sidecars.items():
            spans = zip(lines, masked[technique], strict=True)
            write_sidecar(
                sidecar, [[MaskedSpan(s, e, "MASK", "test", line[s:e], 0) for s, e in own] for line, own in spans]
            )
        return Text(encode_text(path, vocabulary), read_reference_text(path, sidecars))

    return make


def measured(model, text: Text, ranks: dict[str, int] | None = None, **settings) -> dict:
    scores = score_targets(model, text.encoded)
    settings = EvaluationSettings(bootstrap_samples=200, **settings)
    return measure_perplexity(scores, text.reference, settings, "signature", ranks)[0]


def by_sentence(model, text: Text):
    return sentence_scores(score_targets(model, text.encoded), text.reference, EvaluationSettings())


class BigramModel(torch.nn.Module):
    """Next-token log-probabilities in a table (V, V): a token's hidden state is its row."""

    def __init__(self, table: torch.Tensor, maximum_tokens: int = 6):
        super().__init__()
        self.table = table
        self.embedding = SimpleNamespace(weight=torch.eye(len(table)))
        self.architecture = SimpleNamespace(maximum_tokens=maximum_tokens, context="sentence")
        self.languages = None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table[tokens]


@pytest.fixture
def table(vocabulary: Vocabulary) -> torch.Tensor:
    """<s> then a or b, each 1/2; a then b 3/4 or </s> 1/4; b then </s> 1/2, <unk> 1/4 or a 1/4; <unk> then b."""
    size, (a, b) = len(vocabulary), (vocabulary.ids["a"], vocabulary.ids["b"])
    probabilities = torch.zeros(size, size)
    probabilities[START_ID, [a, b]] = 0.5
    probabilities[a, b], probabilities[a, END_ID] = 0.75, 0.25
    probabilities[b, END_ID], probabilities[b, UNKNOWN_ID], probabilities[b, a] = 0.5, 0.25, 0.25
    probabilities[UNKNOWN_ID, b] = 1.0
    return probabilities


@pytest.fixture
def bigram(table: torch.Tensor) -> BigramModel:
    return BigramModel(table.clamp(min=1e-30).log())


def test_a_bigram_model_by_hand(text, bigram):
    # a b </s>: 1/2 * 3/4 * 1/2 = 3/16.  b <unk> b </s>: 1/2 * 1/4 * 1 * 1/2 = 1/16, without <unk> 1/4.
    read = text(["a b", "", "b unheard b"])
    scores = by_sentence(bigram, read)
    assert scores.line.tolist() == [1, 3]
    assert scores.targets.tolist() == [3, 4]
    assert scores.known_targets.tolist() == [3, 3]
    np.testing.assert_allclose(np.exp(scores.log_probability), [3 / 16, 1 / 16], rtol=1e-6)
    np.testing.assert_allclose(np.exp(scores.known_log_probability), [3 / 16, 1 / 4], rtol=1e-6)
    values = measured(bigram, read)
    assert values["perplexity"] == pytest.approx((3 / 256) ** (-1 / 7), rel=1e-6)
    assert values["perplexity_known"] == pytest.approx((3 / 64) ** (-1 / 6), rel=1e-6)
    assert values["perplexity_unknown"] == pytest.approx(4, rel=1e-6)
    assert values["log_probability_unknown_mean"] == pytest.approx(-math.log(4), rel=1e-6)
    assert values["oov_rate"] == pytest.approx(1 / 5)
    assert (values["words"], values["targets"], values["targets_known"], values["targets_unknown"]) == (5, 7, 6, 1)
    assert (values["sentences"], values["empty_lines"]) == (2, 1)
    # "a b " and "b unheard b "
    assert values["characters"] == 4 + 12
    assert values["bits_per_character"] == pytest.approx(math.log2(256 / 3) / 16, rel=1e-6)


def test_masked_words_and_the_rest_by_hand(text, bigram):
    # Masked are b of the first line (3/4) and <unk> (1/4) and the last b (1) of the third.
    spans = {"list": [[(2, 3)], [], [(2, 9), (10, 11)]], "none": [[], [], []], "first": [[], [], [(0, 1)]]}
    read = text(["a b", "", "b unheard b"], spans)
    values = measured(bigram, read)
    masked = values["masked_words"]["list"]
    assert (masked["words"], masked["unknown_words"], masked["share"]) == (3, 1, 3 / 5)
    assert masked["perplexity"] == pytest.approx((3 / 16) ** (-1 / 3), rel=1e-6)
    assert masked["perplexity_known"] == pytest.approx((3 / 4) ** (-1 / 2), rel=1e-6)
    # a, b and both ends: 1/2 each.
    assert masked["rest_targets_known"] == 4
    assert masked["perplexity_rest_known"] == pytest.approx(2, rel=1e-6)
    nothing = values["masked_words"]["none"]
    assert (nothing["words"], nothing["perplexity"], nothing["perplexity_known_ci"]) == (0, None, None)
    assert nothing["perplexity_rest_known"] == values["perplexity_known"]
    # Behind the first b stands <unk>, which is not known, and behind that b, which is certain.
    behind = values["masked_words"]["first"]["behind"]
    assert {name: (each["targets"], each["perplexity"]) for name, each in behind.items() if each["targets"]} == {
        "2 words": (1, pytest.approx(1))
    }
    assert behind["1 word"]["perplexity"] is None


def test_parity_with_a_computation_through_hugging_face(text, small_model):
    model = small_model(seed=4, maximum_tokens=16)
    with torch.no_grad():
        model.embedding.weight.mul_(20)
    read = text(["a b c d", "b unheard a", "d d d a b c a b c d a", "c"], {"list": [[(2, 3)], [(2, 9)], [], [(0, 1)]]})
    peer, total, count, masked = as_gpt2(model), 0.0, 0, []
    encoded = read.encoded
    for number, (begin, end) in enumerate(zip(encoded.offsets[:-1], encoded.offsets[1:], strict=True)):
        tokens = torch.from_numpy(encoded.tokens[begin:end].astype(np.int64))[None]
        # Hugging Face's own loss: the mean over the targets, which are the tokens shifted by one.
        answer = peer(tokens, labels=tokens)
        total += answer.loss.item() * (tokens.shape[1] - 1)
        count += tokens.shape[1] - 1
        # b of the first line and c of the last one are masked and known: words 2 and 1 of their lines.
        if number in (0, 3):
            place = {0: 2, 3: 1}[number]
            masked.append(torch.log_softmax(answer.logits[0, place - 1], dim=-1)[tokens[0, place]].item())
    values = measured(model, read)
    assert values["perplexity"] == pytest.approx(math.exp(total / count), rel=1e-4)
    assert values["masked_words"]["list"]["words"] == 3
    assert values["masked_words"]["list"]["perplexity_known"] == pytest.approx(math.exp(-sum(masked) / 2), rel=1e-4)
