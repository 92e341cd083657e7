"""Perplexities with answers known by hand, and by the command; intervals, and differences between two models."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from marked_text import MaskedText
from pretrained_folder import perplexity, write
from stage_commands import settings

from tasks.cli import main
from tasks.errors import CorpusError
from tasks.language_model.evaluation.bootstrap import paired_ratios, perplexity_intervals
from tasks.language_model.evaluation.by_language import language_groups
from tasks.language_model.evaluation.perplexity import measure_perplexity
from tasks.language_model.evaluation.reference_text import read_reference_text, reference_text_of
from tasks.language_model.evaluation.sentence_scores import SentenceScores, SentenceSums, read_scores, write_scores
from tasks.language_model.settings import EvaluationSettings
from tasks.language_model.transformer.model import save_model
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID, UNKNOWN_ID, Vocabulary


class BigramModel(torch.nn.Module):
    """Next-token log-probabilities in a table (V, V): a token's hidden state is its row."""

    def __init__(self, table):
        super().__init__()
        self.table, self.languages = table, None
        self.embedding = SimpleNamespace(weight=torch.eye(len(table)))
        self.architecture = SimpleNamespace(maximum_tokens=6, context="sentence")

    def forward(self, tokens):
        return self.table[tokens]


@pytest.fixture
def measured(tmp_path, vocabulary, encoded):
    """Measures a text, by technique with what it masks: all are the same text.

    The model: <s> then a or b, each 1/2; a then b 3/4 or </s> 1/4; b then </s> 1/2, <unk> 1/4 or a 1/4; <unk> then b.
    """
    a, b = vocabulary.ids["a"], vocabulary.ids["b"]
    table = torch.zeros(len(vocabulary), len(vocabulary))
    table[START_ID, [a, b]] = 0.5
    table[a, b], table[a, END_ID] = 0.75, 0.25
    table[b, END_ID], table[b, UNKNOWN_ID], table[b, a] = 0.5, 0.25, 0.25
    table[UNKNOWN_ID, b] = 1.0
    model = WordTransformer(BigramModel(table.clamp(min=1e-30).log()), Vocabulary(SPECIAL_TOKENS))

    def measure(**lines):
        texts = {technique: MaskedText.write(tmp_path / technique, marked) for technique, marked in lines.items()}
        raw = next(iter(texts.values())).raw
        reference = read_reference_text(raw, {technique: each.sidecar for technique, each in texts.items()})
        scores = model.score_targets(encoded(raw.read_text(encoding="utf-8").splitlines()))
        return measure_perplexity(scores, reference, EvaluationSettings(bootstrap_samples=200), "signature")

    return measure


def test_a_bigram_model_by_hand(measured):
    # a b </s>: 1/2 * 3/4 * 1/2 = 3/16.  b <unk> b </s>: 1/2 * 1/4 * 1 * 1/2 = 1/16, without <unk> 1/4.
    values, scores = measured(none=["a b", "", "b unheard b"])
    assert scores.line.tolist() == [1, 3]
    assert scores.of("all").targets.tolist() == [3, 4]
    assert scores.of("known").targets.tolist() == [3, 3]
    np.testing.assert_allclose(np.exp(scores.of("all").log_probability), [3 / 16, 1 / 16], rtol=1e-6)
    np.testing.assert_allclose(np.exp(scores.of("known").log_probability), [3 / 16, 1 / 4], rtol=1e-6)
    expected = {
        "perplexity": pytest.approx((3 / 256) ** (-1 / 7), rel=1e-6),
        "perplexity_known": pytest.approx((3 / 64) ** (-1 / 6), rel=1e-6),
        "perplexity_unknown": pytest.approx(4, rel=1e-6),
        "log_probability_unknown_mean": pytest.approx(-math.log(4), rel=1e-6),
        "oov_rate": pytest.approx(1 / 5),
        **{"words": 5, "targets": 7, "targets_known": 6, "targets_unknown": 1, "sentences": 2, "empty_lines": 1},
        "characters": len("a b b unheard b "),
        "bits_per_character": pytest.approx(math.log2(256 / 3) / 16, rel=1e-6),
    }
    assert {name: values[name] for name in expected} == expected


def test_masked_words_and_the_rest_by_hand(measured):
    # Masked are b of the first line (3/4) and <unk> (1/4) and the last b (1) of the third.
    first, none = ["a b", "", "{b} unheard b"], ["a b", "", "b unheard b"]
    values, _ = measured(list=["a {b}", "", "b {unheard} {b}"], none=none, first=first)
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
    # After the first b comes <unk>, which is not known, and then b, which is certain.
    behind = values["masked_words"]["first"]["behind"]
    assert {name: (each["targets"], each["perplexity"]) for name, each in behind.items() if each["targets"]} == {
        "2 words": (1, pytest.approx(1))
    }
    assert behind["1 word"]["perplexity"] is None


def test_all_numbers_and_those_by_sentence(tmp_path, small_model, vocabulary):
    save_model(tmp_path / "model", small_model(seed=3), vocabulary)
    text = write(tmp_path / "text.txt", ["a b c", "", "B d unheard", "c d-a"])
    counts = write(tmp_path / "counts.tsv", ["a\t9", "b\t8", "c\t3", "d\t2"])
    # Everything but a and b is masked: c, d and unheard, and d of d-a.
    words = write(tmp_path / "safe.txt", ["a", "b"])
    sidecar, masked = tmp_path / "sidecars" / "allow_list.jsonl", tmp_path / "masked.txt"
    command = ["mask", "--technique", "allow_list", *settings(f"path={words}"), "--input", text]
    assert main([*command, "--output", str(masked), "--sidecar", str(sidecar)]) == 0
    assert masked.read_text(encoding="utf-8") == "a b [MASK]\n\nB [MASK] [MASK]\n[MASK] [MASK]-a\n"
    options = ["--sidecar", str(tmp_path / "sidecars"), "--word-counts", counts]
    options += ["--scores", str(tmp_path / "scores.tsv"), *settings("frequency_classes=[1, 3]")]
    values = perplexity(tmp_path / "model", text, *options)
    by_frequency = {name: group["targets"] for name, group in values["by_frequency"].items()}
    assert by_frequency == {"rank 1-1": 2, "rank 2-3": 4, "rank over 3": 2, "unknown": 1, "sentence end": 3}
    scores, signature = read_scores(tmp_path / "scores.tsv")
    assert (tmp_path / "scores.tsv").stat().st_mode & 0o777 == 0o600
    assert signature == values["signature"]
    assert scores.of("masked:allow_list").targets.tolist() == [1, 2, 2]
    assert scores.of("masked_known:allow_list").targets.tolist() == [1, 1, 2]
    assert scores.of("all").sum == pytest.approx(values["log_probability"], abs=1e-5)
    written = (tmp_path / "scores.tsv").read_text(encoding="utf-8")
    assert not any(word in written.replace("known", "").split() for word in ("unheard", "a", "b", "c", "d"))
    # The rule for markers is in the signature and in the number.
    renormalised = perplexity(tmp_path / "model", text, *settings("markers=renormalised"))
    assert renormalised["signature"] == signature.replace("in_vocabulary", "renormalised")
    assert values["perplexity"] > renormalised["perplexity"] == values["perplexity_without_markers"]


def test_words_lines_and_switches_by_hand():
    """Each target counts its place in the sentence, so that sums tell which targets were taken."""
    lines = [
        "the house was very big but my sister pero mi hermana no quería comer nada",
        "we went to the school with all of our friends yesterday",
        "mi hermana quiere mucho a su familia porque siempre están juntos",
    ]
    places = np.concatenate([np.arange(len(line.split()) + 1) for line in lines]).astype(np.float64)
    known = np.ones(len(places), dtype=bool)
    known[0] = False
    groups = language_groups(places, known, reference_text_of(lines, "text"), ["en", "es"])
    found = {name: (sums.count, sums.sum) for name, sums in groups.items()}
    behind = [f"{number} word{'s' * (number > 1)}" for number in range(1, 6)]
    assert found == {
        "en": (7 + 11, sum(range(1, 8)) + sum(range(11))),
        "es": (7 + 11, sum(range(8, 15)) + sum(range(11))),
        "mixed": (0, 0),
        "switch points": (1, 8),
        **{f"{words} behind a switch point": (1, place) for place, words in enumerate(behind, start=9)},
        "6 words and more behind a switch point": (1, 14),
        "lines in one language": (24, 2 * sum(range(12))),
        "lines mixed up to 20": (0, 0),
        "lines mixed more than 20": (15, sum(range(1, 16))),
    }


# Intervals by resampling, and differences between two models ------------------------------------------------------

SIGNATURE = "ppl|unit=word|vocab=ab12cd34"


def scores(log_probabilities, targets):
    counts, sums = np.array(targets), np.array(log_probabilities)
    of_all, of_known = SentenceSums(counts, sums), SentenceSums(counts, sums / 2)
    return SentenceScores(np.arange(1, len(counts) + 1), {"all": of_all, "known": of_known})


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """200 texts of 150 sentences with losses of known mean 5: a 90 % interval misses about 20 times."""
    generator = np.random.default_rng(3)
    misses = 0
    for text in range(200):
        targets = generator.integers(3, 12, size=150)
        sums = -generator.normal(5.0, 1.0, size=150) * targets
        ((low, high),) = perplexity_intervals([SentenceSums(targets, sums)], 200, 0.9, seed=text)
        misses += not low <= math.exp(5.0) <= high
    assert 8 <= misses <= 36  # three standard deviations of a binomial (200, 0.1), and a little for 200 resamples


def ratio_of(folder, pairs, signature=SIGNATURE):
    """Of the scores of two models by seed."""
    paths = []
    for number, (first, second) in enumerate(pairs):
        paths.append((folder / f"a{number}.tsv", folder / f"b{number}.tsv"))
        write_scores(paths[-1][0], first, SIGNATURE)
        write_scores(paths[-1][1], second, signature)
    return paired_ratios(paths, ["all"], 500, 0.95, 1)[0]


def test_the_ratio_over_seeds_is_the_geometric_mean(tmp_path):
    """Of perplexities e^3.1 and e^3.3 over e^3."""
    first, second, reference = (scores([-4 * loss] * 10, [4] * 10) for loss in (3.1, 3.3, 3.0))
    ratio, low, high = ratio_of(tmp_path, [(first, reference), (second, reference)])
    assert ratio == pytest.approx(math.exp(0.2), rel=1e-6)
    # The sentences say nothing, the seeds 0.1 or 0.3: resampled means 0.1, 0.2, 0.3, stretched from 0.2 by sqrt(2) and
    # by Student's quantile for one degree of freedom over the normal one.
    reach = 0.1 * 2**0.5 * 12.7062 / 1.95996
    assert (low, high) == pytest.approx((math.exp(0.2 - reach), math.exp(0.2 + reach)), rel=1e-4)


def test_scores_of_other_sentences_or_protocols_do_not_compare(tmp_path):
    first = scores([-3.0, -5.0], [2, 3])
    with pytest.raises(CorpusError, match="do not score the same sentences"):
        ratio_of(tmp_path, [(first, scores([-3.0, -5.0], [2, 4]))])
    with pytest.raises(CorpusError, match=r"follow different protocols .*vocab=ab12cd34 and .*vocab=cd12cd34"):
        ratio_of(tmp_path, [(first, first)], signature=SIGNATURE.replace("ab12", "cd12"))
