"""Intervals by resampling, and differences between two models."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import CorpusError
from tasks.language_model.evaluation.bootstrap import paired_ratios, perplexity_intervals
from tasks.language_model.evaluation.sentence_scores import SentenceScores, SentenceSums, read_scores, write_scores

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


def test_scores_read_back_as_written_and_only_their_owner_can(tmp_path):
    path, groups = tmp_path / "scores.tsv", {"masked:list": SentenceSums(np.array([1, 0]), np.array([-1.25, 0.0]))}
    written = scores([-1.5, -1 / 3], [2, 5])
    written = replace(written, sums=written.sums | groups)
    write_scores(path, written, SIGNATURE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text(encoding="utf-8").splitlines()[2:] == ["1\t2\t-1.5\t2\t-0.75\t1\t-1.25",
                                                                  "2\t5\t-0.333333\t5\t-0.166667\t0\t0"]  # fmt: skip
    read, signature = read_scores(path)
    assert signature == SIGNATURE
    assert (read.line == written.line).all()
    for group in ("all", "known", "masked:list"):
        for name in ("targets", "log_probability"):
            np.testing.assert_allclose(getattr(read.of(group), name), getattr(written.of(group), name), atol=5e-7)


def ratio_over_seeds(folder, losses, targets, samples, confidence):
    """Of models with these losses by seed, in nats a target, and a reference with a loss of 3."""
    pairs = []
    for number, loss in enumerate(losses):
        pair = folder / f"a{number}.tsv", folder / f"b{number}.tsv"
        for path, own in zip(pair, (loss, 3.0), strict=True):
            write_scores(path, scores((-own * targets).tolist(), targets.tolist()), SIGNATURE)
        pairs.append(pair)
    return paired_ratios(pairs, ["all"], samples, confidence, 1)[0]


def test_the_ratio_over_seeds_is_the_geometric_mean(tmp_path):
    """Of perplexities e^3.1 and e^3.3 over e^3."""
    ratio, low, high = ratio_over_seeds(tmp_path, [3.1, 3.3], np.full(10, 4), 400, 0.95)
    assert ratio == pytest.approx(math.exp(0.2), rel=1e-6)
    # The sentences say nothing, the seeds 0.1 or 0.3: resampled means 0.1, 0.2, 0.3, stretched from 0.2 by sqrt(2) and
    # by Student's quantile for one degree of freedom over the normal one.
    reach = 0.1 * 2**0.5 * 12.7062 / 1.95996
    assert (low, high) == pytest.approx((math.exp(0.2 - reach), math.exp(0.2 + reach)), rel=1e-4)


def ratio_of(folder, first, second, signature=SIGNATURE):
    write_scores(folder / "a.tsv", first, SIGNATURE)
    write_scores(folder / "b.tsv", second, signature)
    return paired_ratios([(folder / "a.tsv", folder / "b.tsv")], ["all"], 500, 0.95, 1)[0]


def test_what_sentences_have_in_common_cancels(tmp_path):
    """Sentences differ much, the two models by a factor 1.1 for every target: the interval is that factor alone."""
    generator = np.random.default_rng(1)
    targets = generator.integers(2, 30, size=100)
    sums = -generator.normal(5, 2, size=100) * targets
    found = ratio_of(tmp_path, *(scores(each, targets) for each in (sums - math.log(1.1) * targets, sums)))
    assert found == pytest.approx((1.1, 1.1, 1.1))


def test_scores_of_other_sentences_or_protocols_do_not_compare(tmp_path):
    first = scores([-3.0, -5.0], [2, 3])
    with pytest.raises(CorpusError, match="do not score the same sentences"):
        ratio_of(tmp_path, first, scores([-3.0, -5.0], [2, 4]))
    with pytest.raises(CorpusError, match=r"follow different protocols .*vocab=ab12cd34 and .*vocab=cd12cd34"):
        ratio_of(tmp_path, first, first, signature=SIGNATURE.replace("ab12", "cd12"))
