from dashboards.headline import facts, sentences
from tasks.language_model.settings import EvaluationSettings
from tasks.results.findings.findings_claims import NOT_CONFIRMED, NOT_TESTED, findings
from tasks.results.findings.findings_comparison import Experiment
from tasks.results.tables import tables

ORACLE = 100.0


def row(method, technique, perplexity, filler=None, baseline=None):
    """A row whose intervals are one per cent wide to both sides."""
    ratio = perplexity / baseline if baseline else None
    return {
        "dataset": "chat",
        "technique": technique,
        "method": method,
        "filler": filler,
        "filler_base": None,
        "seed": 1,
        "masked_fraction": 0.1,
        "perplexity": perplexity,
        "perplexity_ci": [perplexity * 0.99, perplexity * 1.01],
        "ratio_to_oracle": perplexity / ORACLE if method != "oracle" else None,
        "ratio_to_baseline1": ratio,
        "ratio_to_baseline1_ci": [ratio * 0.99, ratio * 1.01] if ratio else None,
    }


def rows(allow, threshold):
    """Top-1, Top-K and Unigram of two techniques, with Baseline0 400 and Baseline1 200."""
    found = [row("oracle", None, ORACLE)]
    for technique, (top_1, top_k, unigram) in (("allow_list", allow), ("vocabulary_threshold", threshold)):
        found.append(row("baseline0", technique, 400.0, baseline=200.0))
        found.append(row("baseline1", technique, 200.0))
        found.append(row("top_1", technique, top_1, "minilm", 200.0))
        found.append(row("top_k", technique, top_k, "minilm", 200.0))
        found.append(row("unigram", technique, unigram, None, 200.0))
    return found


def table(allow, threshold):
    return tables(rows(allow, threshold))[0]


def test_without_scores_only_the_intervals_of_the_rows_count():
    made = rows((150.0, 140.0, 190.0), (130.0, 120.0, 190.0))
    claims = findings(Experiment(made, None, EvaluationSettings()))
    assert len(claims) == 8
    # Baseline1 by the rows' own intervals; for Baseline0, and for Top-K against Top-1, there are none.
    assert [claim.verdict for claim in claims[:4]] == [NOT_CONFIRMED, NOT_TESTED, NOT_TESTED, NOT_TESTED]
    assert claims[0].evidence.startswith(
        "4 of 8 comparisons are for it, 0 against it, 0 within their interval, 4 without one"
    )


def test_the_headline_says_how_much_of_the_gap_is_closed():
    """From 200 to 100 is one halving; 141.42 is half of it, by the logarithm."""
    said = sentences(table((150.0, 141.4214, 120.0), (130.0, 300.0, 250.0)))
    assert said[0] == (
        "Allow list: Top-K closes 50% of the gap between Baseline1 (200.0) and Oracle (100.0); the control Unigram, "
        "which sees no context, does as well or better (120.0)."
    )
    assert said[1].endswith("which sees no context, has 250.0.")
    said = sentences(table((250.0, 240.0, 190.0), (130.0, 120.0, 190.0)))
    assert "no model's fill is below Baseline1 (200.0); the best, Top-K, has 240.0" in said[0]


def test_facts_name_the_lowest_fill_by_a_model_or_without_one():
    found = {fact.name: fact for fact in facts(table((150.0, 140.0, 120.0), (130.0, 135.0, 190.0)))}
    assert found["Allow list, 10.0% masked"].meaning == "lowest fill: Unigram"
    assert found["Vocabulary threshold, 10.0% masked"].value == "130.0"
    assert found["Oracle"].value == "100.0"
