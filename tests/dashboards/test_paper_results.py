import re

import pytest

from dashboards.paper_results import DATASETS, RESULTS, printed, readable_range
from dashboards.plots import comparison_plots, paper_ratios
from tasks.results.tables import tables


def test_every_number_of_the_tables_is_there():
    """Ten methods have a triple for each of four tables; Oracle has one number each; two systems have a WER alone."""
    triples = [entry for methods in RESULTS.values() for entry in methods.values() if isinstance(entry, tuple)]
    single = [entry for methods in RESULTS.values() for entry in methods.values() if isinstance(entry, str)]
    assert len(triples) == 9 * 4
    assert len(single) == 4 + 2
    assert all(set(methods) <= set(DATASETS) for methods in RESULTS.values())


def test_numbers_stand_where_the_paper_has_them():
    assert printed("Top-K fine-tuned, RoBERTa", "Fisher", "allow_list") == "65.3"
    assert printed("Baseline0", "WSJ", "entity_tagger") == "204.?"
    assert printed("Oracle", "Reddit", "vocabulary_threshold") == "76.0"
    assert printed("Top-1, BERT", "Fisher", "another_technique") is None
    assert printed("Sample", "Fisher", "allow_list") is None


def test_an_unread_digit_is_a_range():
    ends = {"41.?": (41.0, 41.9), "37.3": (37.3, 37.3), "11.1?": (11.10, 11.19), "204.?": (204.0, 204.9)}
    for text, expected in ends.items():
        assert readable_range(text) == pytest.approx(expected)


def test_ratios_to_oracle_of_the_same_corpus():
    points = {(corpus, method): (low, high) for corpus, method, low, high in paper_ratios("allow_list", "Baseline0")}
    assert points["Fisher", "Baseline0"] == pytest.approx((120.1 / 37.3, 120.1 / 37.3))
    assert len(points) == 3
    top_k = paper_ratios("entity_tagger", "Top-K")
    assert {method for _, method, *_ in top_k} == {"Top-K, BERT", "Top-K, RoBERTa"}
    assert all(low < high for *_, low, high in top_k)


def test_a_fine_tuned_filler_stands_beside_the_papers_fine_tuned_ones():
    def row(method, filler, ratio):
        technique = None if method == "oracle" else "allow_list"
        cell = {"dataset": "chat", "technique": technique, "method": method, "filler": filler, "seed": 1}
        numbers = {"perplexity": 100 * ratio, "ratio_to_oracle": ratio}
        numbers |= {"filler_base": "minilm" if filler == "minilm_tuned" else None}
        return {**cell, **numbers, "masked_words": {}, "by_frequency": {}, "masked_word_errors": {}}

    (table,) = tables([row("oracle", None, 1.0), row("top_k", "minilm", 1.5), row("top_k", "minilm_tuned", 1.2)])
    (plot,) = comparison_plots(table)
    names = re.findall(r'<text class="row" x="[^"]*" y="([^"]*)"[^>]*>([^<]*)<', plot.svg)
    base_lines = {name: float(y) for y, name in names}
    marks = re.findall(r'<title>here, ([^:]*): [^<]*</title><circle [^>]*cy="([^"]*)"', plot.svg)
    # A mark of ours lies 10 pixels above the base line of its row's name.
    assert {name: float(y) + 10 for name, y in marks if name != "Oracle"} == {
        "Top-K fill with MiniLM": base_lines["Top-K"],
        "Top-K fill with minilm_tuned": base_lines["Top-K fine-tuned"],
    }
