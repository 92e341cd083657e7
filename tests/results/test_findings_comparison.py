import math
from dataclasses import replace

import pytest

from tasks.errors import CorpusError
from tasks.language_model.evaluation.sentence_scores import SentenceScores, write_scores
from tasks.language_model.settings import EvaluationSettings
from tasks.results.findings.findings_comparison import Condition, Experiment, Paired, combined

EVALUATION = EvaluationSettings(bootstrap_samples=200)
TOP_1, TOP_K = (Condition("chat", "allow_list", method, "minilm") for method in ("top_1", "top_k"))


def row(condition, seed, perplexity):
    return {
        "dataset": condition.dataset,
        "technique": condition.technique,
        "method": condition.method,
        "filler": condition.filler,
        "filler_base": None,
        "seed": seed,
        "perplexity": perplexity,
        "perplexity_known": perplexity,
        "signature": "ppl",
    }


def scores(folder, name, nats_per_word, sentences=40):
    """Every sentence has ten targets; its nats a word are the mean and, in turn, a little more and less: the mean's
    exponential is their perplexity."""
    import numpy as np

    lines = np.arange(1, sentences + 1)
    targets = np.full(sentences, 10)
    sums = -10.0 * (nats_per_word + 0.02 * np.where(lines % 2, 1, -1))
    path = folder / "chat" / "allow_list" / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_scores(path, SentenceScores(lines, targets, sums, targets, sums), "ppl")


def test_one_seed_has_the_interval_of_the_paired_bootstrap(tmp_path):
    scores(tmp_path, "minilm-top_1-1", 5.0)
    scores(tmp_path, "minilm-top_k-1", 4.9)
    experiment = Experiment([row(TOP_1, 1, math.exp(5.0)), row(TOP_K, 1, math.exp(4.9))], tmp_path, EVALUATION)
    found = experiment.compare(TOP_K, TOP_1, "below")
    # Both models err alike from sentence to sentence, so the ratio is the same in every resample.
    assert found.ratio == pytest.approx(math.exp(-0.1))
    assert (found.low, found.high) == pytest.approx((math.exp(-0.1), math.exp(-0.1)))
    assert found.outcome == "for"
    assert experiment.compare(TOP_1, TOP_K, "below").outcome == "against"


def test_seeds_that_disagree_leave_it_open(tmp_path):
    rows = []
    for seed, difference in ((1, -0.1), (2, 0.08), (3, -0.05)):
        scores(tmp_path, f"minilm-top_1-{seed}", 5.0)
        scores(tmp_path, f"minilm-top_k-{seed}", 5.0 + difference)
        rows += [row(TOP_1, seed, math.exp(5.0)), row(TOP_K, seed, math.exp(5.0 + difference))]
    found = Experiment(rows, tmp_path, EVALUATION).compare(TOP_K, TOP_1, "below")
    assert found.seeds == 3
    assert found.ratio == pytest.approx(math.exp(-0.07 / 3))
    assert found.low < 1 < found.high
    assert found.outcome == "open"


def test_the_interval_over_seeds_by_hand():
    """Logs 0.1 and 0.3: mean 0.2, standard error 0.1, t of one degree of freedom 12.706."""
    ratio, low, high = combined([(math.exp(x), math.exp(x - 0.5), math.exp(x + 0.5)) for x in (0.1, 0.3)], 0.95)
    half = math.hypot(1.27062, 0.5)
    assert math.log(ratio) == pytest.approx(0.2)
    assert (math.log(low), math.log(high)) == pytest.approx((0.2 - half, 0.2 + half), abs=1e-4)


def test_a_missing_file_of_scores_is_named(tmp_path):
    scores(tmp_path, "minilm-top_1-1", 5.0)
    with pytest.raises(CorpusError, match=r"1 of the 2 files of sentence scores .* chat/allow_list/minilm-top_k-1.tsv"):
        Experiment([row(TOP_1, 1, 148.0), row(TOP_K, 1, 134.0)], tmp_path, EVALUATION)


def test_scores_of_another_evaluation_are_refused(tmp_path):
    """A file that was copied over another, or is of another protocol, would change verdicts without a word."""
    scores(tmp_path, "minilm-top_1-1", 5.0)
    scores(tmp_path, "minilm-top_k-1", 4.9)
    rows = [row(TOP_1, 1, math.exp(5.0)), row(TOP_K, 1, math.exp(4.8))]
    with pytest.raises(CorpusError, match=r"minilm-top_k-1.tsv' give a perplexity of 134.*the summary says 121"):
        Experiment(rows, tmp_path, EVALUATION).compare(TOP_K, TOP_1, "below")
    rows[1] |= {"perplexity": math.exp(4.9), "signature": "another"}
    with pytest.raises(CorpusError, match="not of the same evaluation"):
        Experiment([rows[1], {**rows[0], "signature": "another"}], tmp_path, EVALUATION).compare(TOP_K, TOP_1, "below")


def test_an_absent_condition_or_seed_is_no_comparison():
    experiment = Experiment([row(TOP_1, 1, 150.0), row(TOP_K, 1, 120.0)], None, EVALUATION)
    found = experiment.compare(TOP_K, TOP_1, "below")
    # Without scores there is a ratio and no interval.
    assert (found.ratio, found.low, found.outcome) == (0.8, None, "open")
    experiment = Experiment([row(TOP_1, 1, 150.0), row(TOP_K, 2, 120.0)], None, EVALUATION)
    assert experiment.compare(TOP_K, TOP_1, "below").reason == "their seeds differ"
    absent = replace(TOP_1, filler="bert")
    assert experiment.compare(TOP_K, absent, "below").reason == "Top-1 fill with bert is not in the summary"


def test_what_an_interval_says():
    for low, high, expected, limit, outcome in [
        (0.8, 0.9, "below", 1.0, "for"),
        (0.8, 0.9, "above", 1.0, "against"),
        (0.8, 1.1, "below", 1.0, "open"),
        (1.1, 1.2, "above", 1.0, "for"),
        (1.1, 1.2, "below", 1.0, "against"),
        (0.86, 0.9, "below", 0.85, "against"),
    ]:
        assert Paired(TOP_1, TOP_K, (low + high) / 2, low, high, 1, expected, limit).outcome == outcome
