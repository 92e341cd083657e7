"""Verdicts on the paper's claims, the comparisons that they rest on, and their page."""

import math

import numpy as np
import pytest

from tasks.cli import main
from tasks.language_model.evaluation.sentence_scores import SentenceScores, SentenceSums, write_scores
from tasks.language_model.settings import EvaluationSettings
from tasks.results.findings.findings_claims import CONFIRMED, CONTRADICTED, NOT_CONFIRMED, findings
from tasks.results.findings.findings_comparison import Condition, Experiment, Paired

EVALUATION = EvaluationSettings(bootstrap_samples=200)
BASES = {"roberta_tuned": "roberta", "llama_tuned": "llama"}
"""What these fillers were tuned from."""


class Sharp(Experiment):
    """An experiment whose ratios are known to one per cent, so that the numbers of the rows decide."""

    def compare(self, first, second, expected="below", limit=1.0, *, field="perplexity"):
        if second not in self.rows or field == "wer":
            return super().compare(first, second, expected, limit, field=field)
        ratio = self.number(first, field) / self.number(second, field)
        return Paired(first, second, ratio, ratio * 0.99, ratio * 1.01, 1, expected)


def claims(rows, kind=Experiment):
    """Findings by the number of their claim."""
    return {finding.number: finding for finding in findings(kind(rows, None, EVALUATION))}


def row(method, technique, perplexity, filler=None, seed=1, **more):
    known = {"dataset": "chat", "technique": technique, "method": method, "filler": filler, "seed": seed}
    known |= {"filler_base": BASES.get(filler), "perplexity": perplexity, "perplexity_known": perplexity}
    return known | more


def scored(folder, seed, **perplexities):
    """Rows of one seed, with their scores: ten targets a sentence, whose nats are in turn a little more and less."""
    lines, targets = np.arange(1, 41), np.full(40, 10)
    for method, perplexity in perplexities.items():
        sums = -10.0 * (math.log(perplexity) + 0.02 * np.where(lines % 2, 1, -1))
        path = folder / "chat" / "allow_list" / f"minilm-{method}-{seed}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_scores(path, SentenceScores(lines, dict.fromkeys(("all", "known"), SentenceSums(targets, sums))), "ppl")
    known = {"seed": seed, "signature": "ppl"}
    return [row(method, "allow_list", value, "minilm", **known) for method, value in perplexities.items()]


TOP_1, TOP_K = (Condition("chat", "allow_list", method, "minilm") for method in ("top_1", "top_k"))


def test_a_comparison_has_the_interval_of_the_paired_bootstrap_or_of_its_seeds(tmp_path):
    one = Experiment(scored(tmp_path, 1, top_1=150.0, top_k=120.0), tmp_path, EVALUATION)
    found = one.compare(TOP_K, TOP_1, "below")
    # Both models err alike from sentence to sentence, so the ratio is the same in every resample.
    assert (found.ratio, found.low, found.high) == pytest.approx((0.8, 0.8, 0.8))
    assert (found.outcome, one.compare(TOP_1, TOP_K, "below").outcome) == ("for", "against")
    # Seeds that disagree leave it open.
    rows = [
        scored(tmp_path, seed, top_1=150.0, top_k=150.0 * ratio) for seed, ratio in ((1, 0.9), (2, 1.08), (3, 0.95))
    ]
    found = Experiment([each for pair in rows for each in pair], tmp_path, EVALUATION).compare(TOP_K, TOP_1, "below")
    assert (found.seeds, found.ratio) == (3, pytest.approx((0.9 * 1.08 * 0.95) ** (1 / 3)))
    assert found.low < 1 < found.high
    assert found.outcome == "open"


REFERENCES = [
    row("oracle", None, 100.0),
    *(row("baseline0", technique, 400.0) for technique in ("allow_list", "entity_tagger")),
    *(row("baseline1", technique, 200.0) for technique in ("allow_list", "entity_tagger")),
]


def fills(filler, allow, tagger, methods=("top_1", "top_k")):
    return [
        row(method, technique, value, filler)
        for technique, values in (("allow_list", allow), ("entity_tagger", tagger))
        for method, value in zip(methods, values, strict=True)
    ]


PAPER = [
    *fills("bert", (190, 170), (130, 125)),
    *fills("roberta", (180, 160), (120, 115)),
    *fills("roberta_tuned", (170, 150), (115, 110)),
    *fills("llama_tuned", (190,), (125,), methods=("top_1",)),
]
CONTRARY = [
    *fills("bert", (210, 220), (310, 320)),
    *fills("roberta", (230, 240), (330, 340)),
    *fills("roberta_tuned", (250, 260), (350, 360)),
    *fills("llama_tuned", (205,), (300,), methods=("top_1",)),
]
# Methods of our own are not the paper's.
OURS = [row("sample", "allow_list", 900.0, "bert"), row("unigram", "allow_list", 900.0)]


@pytest.mark.parametrize(
    ("rows", "verdicts"),
    [
        (PAPER, dict.fromkeys(range(1, 7), CONFIRMED)),
        (CONTRARY, dict.fromkeys(range(1, 7), CONTRADICTED)),
        (OURS, {}),
        ([], {}),
    ],
    ids=["as in the paper", "the contrary", "other methods", "no fills"],
)
def test_the_paper_as_it_was_and_the_contrary(rows, verdicts):
    found = claims([*REFERENCES, *rows], Sharp)
    assert {number: finding.verdict for number, finding in found.items()} == verdicts


def test_one_fill_above_a_baseline_contradicts_every_but_not_a_tendency():
    rows = [*fills("bert", (150, 140), (130, 210)), *fills("minilm", (150, 140), (150, 140))]
    found = claims([*REFERENCES, *rows], Sharp)
    assert found[1].verdict == CONTRADICTED
    assert "Top-K fill with bert against Baseline1 (chat, entity tagger)" in found[1].evidence
    assert found[2].verdict == NOT_CONFIRMED
    assert found[2].evidence.startswith("Of 4 comparisons 3 support it, 1 contradict it, 0 are undecided;")


def test_a_claim_that_is_compared_in_part_is_not_confirmed():
    """*Both* baselines: without one of them the claim stands for the other alone, and can still be contradicted."""
    one = [row for row in REFERENCES if row["method"] != "baseline1"]
    found = claims([*one, *fills("bert", (190, 170), (130, 125))], Sharp)[1]
    assert (found.verdict, len(found.comparisons), len(found.missing)) == (NOT_CONFIRMED, 4, 4)
    missing = "Top-1 fill with bert against Baseline1 (chat, allow list): Baseline1 is not in the su"
    assert f"Not compared: {missing}" in found.evidence
    assert claims([*one, *fills("bert", (190, 170), (430, 125))], Sharp)[1].verdict == CONTRADICTED


def test_word_error_rates():
    """Paper: 12.6 pretrained, 10.6 Oracle; a fill of 10.7 is 1 % above Oracle, 11.2 is 6 % above."""

    def speech(method, technique, rate, filler=None, seed=1):
        differences = {"pretrained": (rate / 100 - 0.126, 0.0005), "oracle": (rate / 100 - 0.106, 0.0005)}
        columns = {f"wer_difference_to_{name}": value for name, (value, _) in differences.items()}
        columns |= {f"wer_difference_to_{name}_ci": [v - half, v + half] for name, (v, half) in differences.items()}
        return row(method, technique, 100.0, filler, seed, wer=rate / 100, wer_ci=None, **columns)

    rows = [
        speech("pretrained", None, 12.6, seed=None),
        speech("oracle", None, 10.6),
        speech("top_k", "vocabulary_threshold", 10.65, "bert"),
        speech("top_k", "entity_tagger", 11.3, "bert"),
    ]
    found = claims(rows)
    cut, near = found[7], found[8]
    # Oracle cuts by 15.9 %, the fills by 15.5 and 10.3 %.
    assert (cut.verdict, [c.outcome for c in cut.comparisons]) == (NOT_CONFIRMED, ["for", "against", "for"])
    assert [c.outcome for c in near.comparisons] == ["for", "against"]
    assert [c.limit for c in near.comparisons] == [1.01, 1.05]
    # 10.65 / 10.6, and half a tenth of a point to both sides.
    assert (near.comparisons[0].low, near.comparisons[0].high) == pytest.approx((1.0, 1.00943), abs=1e-5)


def test_the_page_has_every_claim_and_number(experiment, capsys):
    """The handmade rows: the paper's methods are below Baseline0 and, on the lists, above Baseline1."""
    assert main(["findings", "--output", "findings.md"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line[0] for line in said] == ["1", "2", "4", "f"]
    assert said[0] == "1. contradicted   Every filling method beats both baselines."
    page = (experiment / "findings.md").read_text(encoding="utf-8")
    assert "| 4 | The gap to Oracle is largest for the allow list. | **confirmed** | Of" in page
    # 476 / 427.
    assert "| 1 | chat | allow list | Top-1 fill with MiniLM | Baseline1 | 1 | 1.115 [" in page
