import math
from dataclasses import replace

import numpy as np
import pytest

from tasks.language_model.evaluation.sentence_scores import SentenceScores, SentenceSums, write_scores
from tasks.language_model.settings import EvaluationSettings
from tasks.results.findings.findings_comparison import Condition, Experiment

EVALUATION = EvaluationSettings(bootstrap_samples=200)
TOP_1, TOP_K = (Condition("chat", "allow_list", method, "minilm") for method in ("top_1", "top_k"))


def row(method, seed, perplexity, folder=None):
    """A row of Top-1 or Top-K, and in a folder its scores.

    Every sentence has ten targets. Its nats a word are the mean and, in turn, a little more and less.
    """
    if folder is not None:
        lines, targets = np.arange(1, 41), np.full(40, 10)
        sums = -10.0 * (math.log(perplexity) + 0.02 * np.where(lines % 2, 1, -1))
        path = folder / "chat" / "allow_list" / f"minilm-{method}-{seed}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_scores(path, SentenceScores(lines, dict.fromkeys(("all", "known"), SentenceSums(targets, sums))), "ppl")
    known = {"dataset": "chat", "technique": "allow_list", "method": method, "filler": "minilm", "filler_base": None}
    return known | {"seed": seed, "perplexity": perplexity, "perplexity_known": perplexity, "signature": "ppl"}


def test_one_seed_has_the_interval_of_the_paired_bootstrap(tmp_path):
    rows = [row("top_1", 1, 150.0, tmp_path), row("top_k", 1, 120.0, tmp_path)]
    experiment = Experiment(rows, tmp_path, EVALUATION)
    found = experiment.compare(TOP_K, TOP_1, "below")
    # Both models err alike from sentence to sentence, so the ratio is the same in every resample.
    assert (found.ratio, found.low, found.high) == pytest.approx((0.8, 0.8, 0.8))
    assert found.outcome == "for"
    assert experiment.compare(TOP_1, TOP_K, "below").outcome == "against"


def test_seeds_that_disagree_leave_it_open(tmp_path):
    rows = []
    for seed, ratio in ((1, 0.9), (2, 1.08), (3, 0.95)):
        rows += [row("top_1", seed, 150.0, tmp_path), row("top_k", seed, 150.0 * ratio, tmp_path)]
    found = Experiment(rows, tmp_path, EVALUATION).compare(TOP_K, TOP_1, "below")
    assert found.seeds == 3
    assert found.ratio == pytest.approx((0.9 * 1.08 * 0.95) ** (1 / 3))
    assert found.low < 1 < found.high
    assert found.outcome == "open"


def test_an_absent_condition_or_seed_is_no_comparison():
    experiment = Experiment([row("top_1", 1, 150.0), row("top_k", 1, 120.0)], None, EVALUATION)
    found = experiment.compare(TOP_K, TOP_1, "below")
    # Without scores there is a ratio and no interval.
    assert (found.ratio, found.low, found.outcome) == (0.8, None, "open")
    absent = experiment.compare(TOP_K, replace(TOP_1, filler="bert"), "below")
    assert absent.reason == "Top-1 fill with bert is not in the summary"
    experiment = Experiment([row("top_1", 1, 150.0), row("top_k", 2, 120.0)], None, EVALUATION)
    assert experiment.compare(TOP_K, TOP_1, "below").reason == "their seeds differ"
