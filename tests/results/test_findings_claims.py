import math

import pytest

from tasks.language_model.settings import EvaluationSettings
from tasks.results.findings.findings_beyond import Gap, Share, beyond
from tasks.results.findings.findings_claims import CONFIRMED, CONTRADICTED, NOT_CONFIRMED, NOT_TESTED, findings
from tasks.results.findings.findings_comparison import Comparison, Experiment

EVALUATION = EvaluationSettings()
BASES = {"roberta_tuned": "roberta", "llama_tuned": "llama"}
"""What these fillers were tuned from."""


class Sharp(Experiment):
    """An experiment whose ratios are known to one per cent, so that the numbers of the rows decide."""

    def __init__(self, rows):
        super().__init__(rows, None, EvaluationSettings())

    def compare(self, first, second, expected, *, known=False, seeds=None):
        if second not in self.by_condition:
            return super().compare(first, second, expected, known=known)
        field = "perplexity_known" if known else "perplexity"
        ratio = self.number(first, field, seeds) / self.number(second, field, seeds)
        place = first.dataset, f"{first.technique}", first.label, second.label
        return Comparison(*place, ratio, ratio * 0.99, ratio * 1.01, 1, expected)


def row(method, technique, perplexity, filler=None, seed=1, **more):
    return {
        "dataset": "chat",
        "technique": technique,
        "method": method,
        "filler": filler,
        "filler_base": BASES.get(filler),
        "seed": seed,
        "perplexity": perplexity,
        "perplexity_known": perplexity,
        **more,
    }


REFERENCES = [
    row("oracle", None, 100.0),
    *(row("baseline0", technique, 400.0) for technique in ("allow_list", "entity_tagger")),
    *(row("baseline1", technique, 200.0) for technique in ("allow_list", "entity_tagger")),
]


def verdicts(*rows):
    return [finding.verdict for finding in findings(Sharp([*REFERENCES, *rows]))]


def fills(filler, allow, tagger, methods=("top_1", "top_k")):
    return [
        row(method, technique, value, filler)
        for technique, values in (("allow_list", allow), ("entity_tagger", tagger))
        for method, value in zip(methods, values, strict=True)
    ]


def test_the_paper_as_it_was_and_the_contrary():
    paper = [
        *fills("bert", (190, 170), (130, 125)),
        *fills("roberta", (180, 160), (120, 115)),
        *fills("roberta_tuned", (170, 150), (115, 110)),
        *fills("llama_tuned", (190,), (125,), methods=("top_1",)),
    ]
    contrary = [
        *fills("bert", (210, 220), (310, 320)),
        *fills("roberta", (230, 240), (330, 340)),
        *fills("roberta_tuned", (250, 260), (350, 360)),
        *fills("llama_tuned", (205,), (300,), methods=("top_1",)),
    ]
    # Methods of our own are not the paper's.
    ours = [row("sample", "allow_list", 900.0, "bert"), row("unigram", "allow_list", 900.0)]
    for rows, verdict in [(paper, CONFIRMED), (contrary, CONTRADICTED), (ours, NOT_TESTED), ([], NOT_TESTED)]:
        assert verdicts(*rows) == [verdict] * 6 + [NOT_TESTED] * 2


def test_one_fill_above_a_baseline_contradicts_every_but_not_a_tendency():
    rows = [*fills("bert", (150, 140), (130, 210)), *fills("minilm", (150, 140), (150, 140))]
    found = findings(Sharp([*REFERENCES, *rows]))
    assert found[0].verdict == CONTRADICTED
    assert "Top-K fill with bert against Baseline1 (chat, entity tagger)" in found[0].evidence
    assert found[1].verdict == NOT_CONFIRMED
    assert found[1].evidence.startswith("3 of 4 comparisons are for it, 1 against it, 0 within")


def test_a_claim_that_is_compared_in_part_is_not_confirmed():
    """*Both* baselines: without one of them the claim stands for the other alone, and can still be contradicted."""
    one = [row for row in REFERENCES if row["method"] != "baseline1"]
    (found, *_) = findings(Sharp([*one, *fills("bert", (190, 170), (130, 125))]))
    assert (found.verdict, len(found.comparisons), len(found.missing)) == (NOT_CONFIRMED, 4, 4)
    assert (
        "Not compared: Top-1 fill with bert against Baseline1 (chat, allow list): Baseline1 is not in the su"
        in found.evidence
    )
    (found, *_) = findings(Sharp([*one, *fills("bert", (190, 170), (430, 125))]))
    assert found.verdict == CONTRADICTED


def test_numbers_of_another_protocol_are_named_and_in_no_table():
    rows = [{**each, "signature": "a"} for each in [*REFERENCES, *fills("bert", (150, 140), (130, 125))]]
    other = {**row("log_linear", "allow_list", 50.0, "bert"), "signature": "b"}
    experiment = Sharp([*rows, other])
    found = beyond(experiment)
    assert found.other_protocol == ("Log-linear fill with bert (chat, allow list)",)
    assert {best.label for best in found.best} == {"Top-K fill with bert"}
    assert "Log-linear fill with bert" not in {gap.label for gap in found.gaps}
    moved = [{**each, "signature": "b" if each["method"] == "baseline1" else "a"} for each in rows]
    first = findings(Experiment(moved, None, EvaluationSettings()))[0]
    assert [each.reason for each in first.missing] == ["their perplexities follow different protocols"] * 4


@pytest.mark.parametrize("method", ["oracle", "baseline1", "top_k"])
@pytest.mark.parametrize(("other", "named"), [((2,), "; seed 2"), ((2, 3), "; seeds 2, 3")])
def test_the_seeds_of_another_protocol_are_named(method, other, named):
    """A gap that they leave unknown has a reason on the page."""
    rows = [
        row(name, technique, value, filler, seed, signature="b" if name == method and seed in other else "a")
        for seed in (1, 2, 3)
        for name, technique, value, filler in (
            ("oracle", None, 100.0, None),
            ("baseline1", "allow_list", 200.0, None),
            ("top_k", "allow_list", 150.0, "bert"),
        )
    ]
    found = beyond(Sharp(rows))
    places = {
        "oracle": "Oracle (chat",
        "baseline1": "Baseline1 (chat, allow list",
        "top_k": "Top-K fill with bert (chat, allow list",
    }
    assert found.other_protocol == (f"{places[method]}{named})",)
    assert [gap.closed for gap in found.gaps] == ([] if method == "top_k" else [None])


def test_word_error_rates():
    """Paper: 12.6 pretrained, 10.6 Oracle; a fill of 10.7 is 1 % above Oracle, 11.2 is 6 % above."""

    def speech(method, technique, rate, filler=None, seed=1):
        columns = {"wer": rate / 100, "wer_ci": None}
        for reference, other in (("pretrained", 12.6), ("oracle", 10.6)):
            difference = (rate - other) / 100
            columns[f"wer_difference_to_{reference}"] = difference
            columns[f"wer_difference_to_{reference}_ci"] = [difference - 0.0005, difference + 0.0005]
        return row(method, technique, 100.0, filler, seed, **columns)

    rows = [
        speech("pretrained", None, 12.6, seed=None),
        speech("oracle", None, 10.6),
        speech("top_k", "vocabulary_threshold", 10.65, "bert"),
        speech("top_k", "entity_tagger", 11.3, "bert"),
    ]
    cut, near = findings(Experiment(rows, None, EvaluationSettings()))[6:]
    # Oracle cuts by 15.9 %, the fills by 15.5 and 10.3 %.
    assert (cut.verdict, [c.outcome for c in cut.comparisons]) == (NOT_CONFIRMED, ["for", "against", "for"])
    assert [c.outcome for c in near.comparisons] == ["for", "against"]
    assert [c.limit for c in near.comparisons] == [1.01, 1.05]
    # 10.65 / 10.6, and half a tenth of a point to both sides.
    assert (near.comparisons[0].low, near.comparisons[0].high) == pytest.approx((1.0, 1.00943), abs=1e-5)
    # Without a rate for one of the two techniques half of the claim is open.
    (near,) = findings(Experiment(rows[:3], None, EvaluationSettings()))[7:]
    assert (near.verdict, len(near.comparisons)) == (NOT_CONFIRMED, 1)
    assert near.missing[0].reason == "no fill of this technique has a rate"


def seeded(method, perplexities, technique="allow_list", filler="bert", **more):
    """Rows of a condition by the perplexities of its seeds."""
    return [row(method, technique, value, filler, seed, **more) for seed, value in perplexities.items()]


def test_the_best_fill_is_the_best_over_the_seeds_that_all_have():
    """Over all its seeds Top-K has 141 and Top-1 150, and over the one that both have it is 200 and 150."""
    rows = [*seeded("top_k", {1: 100.0, 2: 200.0}), *seeded("top_1", {2: 150.0})]
    found = beyond(Sharp(rows))
    (best,) = found.best_all_words
    assert (best.label, best.seeds, best.of_fewer_seeds) == ("Top-1 fill with bert", (2,), True)
    assert (best.perplexity, best.to_next.ratio, best.to_next.second) == pytest.approx(
        (150.0, 0.75, "Top-K fill with bert")
    )
    assert found.no_common_seed == ()
    (best,) = beyond(Sharp(seeded("top_k", {1: 100.0, 2: 200.0}))).best
    assert (best.seeds, best.of_fewer_seeds) == ((1, 2), False)


def test_the_next_best_is_held_against_the_best_over_the_ranked_seeds():
    """Top-K is better in seed 1, which all three have, and worse in seed 2."""
    rows = [
        *seeded("top_k", {1: 100.0, 2: 900.0}),
        *seeded("top_1", {1: 110.0, 2: 100.0}),
        *seeded("sample", {1: 120.0}),
    ]
    (best,) = beyond(Experiment(rows, None, EVALUATION)).best
    assert (best.label, best.to_next.second, best.to_next.seeds) == ("Top-K fill with bert", "Top-1 fill with bert", 1)
    assert best.to_next.ratio == pytest.approx(100 / 110)


def test_fills_without_a_common_seed_are_left_out_and_named():
    rows = [
        *(row("oracle", None, 100.0, seed=seed) for seed in (1, 2)),
        row("baseline1", "allow_list", 400.0, seed=1),
        *seeded("top_k", {1: 150.0, 2: 150.0}),
        *seeded("sample", {1: 160.0}),
        *seeded("top_1", {2: 90.0}),
    ]
    found = beyond(Sharp(rows))
    assert [(best.label, best.seeds) for best in found.best] == [("Top-K fill with bert", (1,))]
    assert found.no_common_seed == (
        "Top-1 fill with bert (chat, allow list) beside the other fills",
        "Top-1 fill with bert (chat, allow list) beside Baseline1",
    )
    gaps = {gap.label: gap for gap in found.gaps}
    assert (gaps["Top-K fill with bert"].seeds, gaps["Top-K fill with bert"].closed.seeds) == (2, 1)
    assert gaps["Top-K fill with bert"].of_top_k.seeds == 2
    assert gaps["Top-1 fill with bert"].closed is None


def test_the_nearest_top_k_is_the_nearest_in_the_seeds_of_the_fill():
    """Over all its seeds the Top-K of BERT is nearer, and over that of the fill the one of RoBERTa."""
    rows = [
        *(row("oracle", None, 100.0, seed=seed) for seed in (1, 2)),
        *seeded("top_k", {1: 110.0, 2: 300.0}),
        *seeded("top_k", {1: 200.0, 2: 200.0}, filler="roberta"),
        *seeded("unigram", {2: 150.0}, filler=None),
    ]
    gaps = {gap.label: gap for gap in beyond(Sharp(rows)).gaps}
    # (150 - 100) of (200 - 100).
    assert gaps["Unigram"].of_top_k.value == pytest.approx(0.5)


def test_llama_is_held_against_the_best_fill_over_common_seeds():
    """Over all its seeds BERT has 141 and RoBERTa 150; over seed 2, which all have, RoBERTa is the best."""
    rows = [
        *(row("baseline1", "allow_list", 400.0, seed=seed) for seed in (1, 2, 3)),
        *seeded("top_1", {2: 160.0, 3: 160.0}, filler="llama_tuned"),
        *seeded("top_k", {1: 100.0, 2: 200.0}),
        *seeded("top_k", {2: 150.0}, filler="roberta"),
    ]
    found = findings(Sharp(rows))[5]
    assert [c.second for c in found.comparisons] == ["Baseline1", "Top-K fill with roberta"]
    assert [c.ratio for c in found.comparisons] == pytest.approx([160 / 400, 160 / 150])
    assert (found.verdict, found.missing) == (CONFIRMED, ())
    found = findings(Sharp([*rows, *seeded("top_k", {3: 150.0}, filler="minilm")]))[5]
    assert (found.verdict, [c.second for c in found.comparisons]) == (
        NOT_CONFIRMED,
        ["Baseline1", "Top-K fill with roberta"],
    )
    assert (
        "Top-1 fill with llama_tuned against Top-K fill with MiniLM (chat, allow list): it has no seed in common"
        in found.evidence
    )


def spoken(method, rates, technique="entity_tagger", filler="bert", references=(), over_seeds=None):
    """Rows with word error rates by seed; ``references``: rates by seed of Oracle, that they differ from by a point
    more or less."""
    rows = []
    for seed, rate in rates.items():
        columns = {"wer": rate, "wer_ci": [rate - 0.01, rate + 0.01], "over_seeds": over_seeds}
        if seed in references:
            difference = rate - references[seed]
            columns["wer_difference_to_oracle"] = difference
            columns["wer_difference_to_oracle_ci"] = [difference - 0.01, difference + 0.01]
        rows.append(row(method, technique, 100.0, filler, seed, **columns))
    return rows


def test_rates_are_divided_over_the_seeds_that_both_have():
    """Oracle has 0.30 in seed 2, and the mean of its seeds is 0.25."""
    oracle = {1: 0.20, 2: 0.30}
    rows = [*spoken("oracle", oracle, None, None), *spoken("top_k", {2: 0.31}, references=oracle)]
    near = findings(Experiment(rows, None, EVALUATION))[7]
    (found,) = near.comparisons
    assert (found.ratio, found.seeds) == (pytest.approx(0.31 / 0.30), 1)
    assert (found.low, found.high) == pytest.approx((0.30 / 0.30, 0.32 / 0.30))
    # The fill's numbers over its two seeds are no pairs where Oracle has one.
    both = {"seeds": [1, 2], "wer": 0.26, "wer_ci": [0.25, 0.27]}
    both |= {"wer_difference_to_oracle": 0.01, "wer_difference_to_oracle_ci": [0.0, 0.02]}
    rows = [
        *spoken("oracle", {2: 0.30}, None, None),
        *spoken("top_k", {1: 0.21, 2: 0.31}, references=oracle, over_seeds=both),
    ]
    (found,) = findings(Experiment(rows, None, EVALUATION))[7].comparisons
    assert (found.ratio, found.low, found.high) == pytest.approx((0.31 / 0.30, 1.0, 0.32 / 0.30))


def test_the_best_rate_is_the_best_over_the_seeds_that_all_have():
    """Over all its seeds Top-K has 0.25 and Top-1 0.28; over seed 2 it is 0.30 and 0.28. Seed 3 is of one alone."""
    oracle = {1: 0.2, 2: 0.25, 3: 0.2}
    rows = [
        *spoken("oracle", oracle, None, None),
        *spoken("top_k", {1: 0.2, 2: 0.3}, references=oracle),
        *spoken("top_1", {2: 0.28}, references=oracle),
        *spoken("top_1", {3: 0.1}, references=oracle, filler="minilm"),
    ]
    near = findings(Experiment(rows, None, EVALUATION))[7]
    assert [(c.first, c.ratio) for c in near.comparisons] == [("Top-1 fill with bert", pytest.approx(0.28 / 0.25))]
    assert (
        "Top-1 fill with MiniLM against Oracle (chat, entity tagger): it has no seed in common with what it"
        in near.evidence
    )
    assert [each.first for each in near.missing] == ["the best fill", "Top-1 fill with MiniLM"]


def test_the_range_of_seeds_is_no_interval_of_word_error_rates():
    """Two seeds that agree by chance say nothing of their utterances; only what the summary has for both counts."""

    def speech(method, technique, rate, filler=None, seed=1, over_seeds=None):
        columns = {"wer": rate, "wer_ci": [rate - 0.02, rate + 0.02], "over_seeds": over_seeds}
        difference = {"wer_difference_to_pretrained": rate - 0.3, "wer_difference_to_pretrained_ci": [-0.1, 0.1]}
        return row(method, technique, 100.0, filler, seed, **columns, **difference)

    alone = speech("pretrained", None, 0.3, seed=None)
    (cut,) = findings(Experiment([alone, *(speech("oracle", None, 0.25, seed=s) for s in (1, 2))], None, EVALUATION))[
        6:7
    ]
    assert (cut.verdict, cut.comparisons[0].low) == (NOT_TESTED, None)
    both = {"seeds": [1, 2], "wer": 0.25, "wer_ci": [0.24, 0.26]}
    both |= {"wer_difference_to_pretrained": -0.05, "wer_difference_to_pretrained_ci": [-0.06, -0.04]}
    rows = [speech("oracle", None, rate, seed=seed, over_seeds=both) for seed, rate in ((1, 0.24), (2, 0.26))]
    (cut,) = findings(Experiment([alone, *rows], None, EVALUATION))[6:7]
    assert (cut.verdict, cut.comparisons[0].ratio) == (NOT_CONFIRMED, pytest.approx(0.25 / 0.3))
    # A summary of one of the two seeds is of this one.
    (cut,) = findings(Experiment([alone, rows[0]], None, EVALUATION))[6:7]
    assert cut.comparisons[0].ratio == pytest.approx(0.24 / 0.3)


def test_the_gap_that_is_closed_and_what_is_left_of_top_k():
    """From 200 to 100 is one halving, 141.42 half of it; 110 leaves a tenth of the way that 200 leaves."""
    rows = [
        row("top_k", "allow_list", 150.0, "bert"),
        row("sample", "allow_list", 141.4214, "bert"),
        row("unigram", "allow_list", 105.0) | {"perplexity_known": 110.0},
    ]
    found = beyond(Sharp([*REFERENCES, *rows]))
    gaps = {gap.label: gap for gap in found.gaps}
    assert gaps["Sample fill with bert"].closed.value == pytest.approx(0.5)
    assert gaps["Sample fill with bert"].of_top_k.value == pytest.approx(0.828428)
    assert gaps["Top-K fill with bert"].of_top_k.value == pytest.approx(1.0)
    assert gaps["Unigram"].of_top_k.value == pytest.approx(0.2)
    assert gaps["Unigram"].of_top_k_all_words.value == pytest.approx(0.1)
    assert gaps["Unigram"].closed_all_words.value == pytest.approx(math.log(200 / 105) / math.log(2))
    (best,) = found.best_all_words
    assert (best.label, best.perplexity, best.to_next.second) == (
        "Unigram",
        pytest.approx(105),
        "Sample fill with bert",
    )
    (best,) = found.best
    assert (best.label, best.to_next.second, best.to_control) == ("Unigram", "Sample fill with bert", None)


def test_a_gap_without_a_way_to_oracle_is_undefined():
    rows = [row("oracle", None, 100.0), row("baseline1", "allow_list", 99.0), row("top_k", "allow_list", 98.0, "bert")]
    (gap,) = beyond(Sharp(rows)).gaps
    assert (gap.closed, gap.of_top_k) == (None, None)


def test_gaps_over_seeds():
    rows = [
        row(method, technique, value, filler, seed)
        for seed, fill in ((1, 200.0), (2, 100.0))
        for method, technique, value, filler in (
            ("oracle", None, 100.0, None),
            ("baseline1", "allow_list", 200.0, None),
            ("sample", "allow_list", fill, "bert"),
        )
    ]
    (gap,) = beyond(Sharp(rows)).gaps
    assert (gap.seeds, gap.closed.value, gap.closed.smallest, gap.closed.largest) == pytest.approx((2, 0.5, 0.0, 1.0))
    assert gap.closed.interval is None


def test_restoration_beside_guessing_is_judged_by_its_interval():
    """Ends of 0.8 to 1.2 and 1.0 to 1.4 per cent in two seeds: 0.9 to 1.3."""
    ends = {1: [0.008, 0.012], 2: [0.010, 0.014]}
    rows = [
        row(
            "top_k",
            "allow_list",
            150.0,
            filler,
            seed,
            restoration_rate=0.010 + 0.002 * (seed - 1),
            restoration_rate_ci=ends[seed],
            restoration_by_frequency=guess,
        )
        for filler, guess in (("low", 0.0085), ("middle", 0.0125), ("high", 0.0135), ("none", None))
        for seed in (1, 2)
    ]
    found = beyond(Sharp([*REFERENCES, *rows])).restored
    assert [(r.label, r.beside_guessing) for r in found] == [
        ("Top-K fill with low", "more"),
        ("Top-K fill with middle", "open"),
        ("Top-K fill with high", "fewer"),
        ("Top-K fill with none", None),
    ]
    assert found[0].rate == pytest.approx(0.011)
    assert found[0].interval == pytest.approx((0.009, 0.013))


def test_the_goal_is_judged_by_the_interval():
    for interval, goal in [((0.1, 0.2), "for"), ((0.15, 0.25), "open"), ((0.21, 0.4), "against"), (None, None)]:
        assert Gap("chat", "allow_list", "ours", 3, None, Share(0.15, 0.1, 0.3, interval, 3), None, None).goal == goal
