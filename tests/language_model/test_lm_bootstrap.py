"""Intervals by resampling, and differences between two models."""

import math
from pathlib import Path

import numpy as np
import pytest

from tasks.errors import CorpusError
from tasks.language_model.bootstrap import paired_perplexity_ratio, perplexity_interval, perplexity_of, resample_counts
from tasks.language_model.sentence_scores import SentenceScores, read_scores, write_scores

SIGNATURE = "ppl|unit=word|vocab=ab12cd34"


def scores(log_probabilities: list[float], targets: list[int], known: list[int] | None = None) -> SentenceScores:
    counts = np.array(targets)
    known_counts = counts if known is None else np.array(known)
    sums = np.array(log_probabilities)
    return SentenceScores(np.arange(1, len(counts) + 1), counts, sums, known_counts, sums / 2)


def test_perplexity_is_a_ratio_of_sums() -> None:
    assert perplexity_of(np.array([-2.0, -4.0]), np.array([1, 2])) == pytest.approx(math.exp(2))
    assert perplexity_of(np.array([]), np.array([])) is None
    assert perplexity_of(np.array([-math.inf]), np.array([1])) is None


def test_a_resample_draws_as_many_sentences_as_there_are() -> None:
    blocks = list(resample_counts(700_000, 5, seed=1))  # more than fit into one block
    assert [block.shape[0] for block in blocks] == [2, 2, 1]
    assert all((block.sum(axis=1) == 700_000).all() for block in blocks)
    # A sentence is left out of a resample with probability (1 - 1/n)^n, 1/e for many.
    assert (blocks[0] == 0).mean() == pytest.approx(math.exp(-1), abs=0.002)


def test_resamples_follow_the_seed() -> None:
    first, again, other = (next(resample_counts(50, 20, seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """200 texts of 150 sentences with losses of known mean 5: a 90 % interval misses about 20 times."""
    generator = np.random.default_rng(3)
    misses = 0
    for text in range(200):
        targets = generator.integers(3, 12, size=150)
        sums = -generator.normal(5.0, 1.0, size=150) * targets
        low, high = perplexity_interval(sums, targets, samples=400, confidence=0.9, seed=text)
        misses += not low <= math.exp(5.0) <= high
    assert 8 <= misses <= 36  # three standard deviations of a binomial (200, 0.1), and a little for 400 resamples


def test_scores_read_back_as_written_and_only_their_owner_can(tmp_path: Path) -> None:
    written = scores([-1.5, -1 / 3], [2, 5])
    path = tmp_path / "scores.tsv"
    write_scores(path, written, SIGNATURE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text(encoding="utf-8").splitlines()[:3] == [
        f"# {SIGNATURE}",
        "line\ttargets\tlog_probability\tknown_targets\tknown_log_probability",
        "1\t2\t-1.5\t2\t-0.75",
    ]
    read, signature = read_scores(path)
    assert signature == SIGNATURE
    for name in ("line", "targets", "log_probability", "known_targets", "known_log_probability"):
        assert np.array_equal(getattr(read, name), getattr(written, name))


def ratio_of(folder: Path, first: SentenceScores, second: SentenceScores, known: bool = False):
    write_scores(folder / "a.tsv", first, SIGNATURE)
    write_scores(folder / "b.tsv", second, SIGNATURE)
    return paired_perplexity_ratio(folder / "a.tsv", folder / "b.tsv", 500, 0.95, 1, known=known)


def test_the_ratio_of_two_perplexities_by_hand(tmp_path: Path) -> None:
    first, second = scores([-6.0, -6.0], [2, 1], [1, 1]), scores([-3.0, -3.0], [2, 1], [1, 1])
    assert ratio_of(tmp_path, first, second)[0] == pytest.approx(math.exp(4) / math.exp(2))
    assert ratio_of(tmp_path, first, second, known=True)[0] == pytest.approx(math.exp(3) / math.exp(1.5))


def test_what_sentences_have_in_common_cancels(tmp_path: Path) -> None:
    """Sentences differ much, the two models by a factor 1.1 for every target: the interval is that factor alone."""
    generator = np.random.default_rng(1)
    targets = generator.integers(2, 30, size=100)
    sums = -generator.normal(5, 2, size=100) * targets
    ratio, low, high = ratio_of(
        tmp_path,
        scores((sums - math.log(1.1) * targets).tolist(), targets.tolist()),
        scores(sums.tolist(), targets.tolist()),
    )
    assert (ratio, low, high) == pytest.approx((1.1, 1.1, 1.1))


def test_two_equal_models_differ_by_nothing_and_one_sentence_has_no_interval(tmp_path: Path) -> None:
    same = scores([-3.0, -5.0, -1.0], [2, 3, 1])
    assert ratio_of(tmp_path, same, same) == (1.0, 1.0, 1.0)
    one = scores([-3.0], [2])
    assert ratio_of(tmp_path, one, one) == (1.0, None, None)


def test_scores_of_other_sentences_or_protocols_do_not_compare(tmp_path: Path) -> None:
    first = scores([-3.0, -5.0], [2, 3])
    with pytest.raises(CorpusError, match="do not score the same sentences"):
        ratio_of(tmp_path, first, scores([-3.0, -5.0], [2, 4]))
    write_scores(tmp_path / "b.tsv", first, SIGNATURE.replace("ab12", "cd12"))
    with pytest.raises(CorpusError, match=r"follow different protocols .*vocab=ab12cd34 and .*vocab=cd12cd34"):
        paired_perplexity_ratio(tmp_path / "a.tsv", tmp_path / "b.tsv", 100, 0.95, 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["nothing of the kind"], "is not a scores file"),
        ([f"# {SIGNATURE}", "line\ttargets", "1\t2"], "is not a scores file"),
        ([f"# {SIGNATURE}", "HEADER", "1\t2\t-1.0\t2\t-1.0", "2\tx\t-1.0\t2\t-1.0"], "line 4 does not hold"),
        ([f"# {SIGNATURE}", "HEADER", "1\t2\t-1.0"], "line 3 does not hold"),
    ],
)
def test_what_is_no_scores_file_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    header = "line\ttargets\tlog_probability\tknown_targets\tknown_log_probability"
    path = tmp_path / "scores.tsv"
    path.write_text("\n".join(lines).replace("HEADER", header) + "\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read_scores(path)
