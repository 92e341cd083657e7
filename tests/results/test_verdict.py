"""The verdict of experiments whose scores are made up: every sentence has ten words, and its nats are known."""

import json
import math
import re

import numpy as np
import pytest

from tasks.language_model.evaluation.sentence_scores import SentenceScores, SentenceSums, write_scores
from tasks.privacy.gate import Outcome
from tasks.privacy.settings import ReleaseSettings
from tasks.results.readings import readings, signal
from tasks.results.report_index import ReportIndex
from tasks.results.verdict import verdicts

SENTENCES = 60
MASKED = {"allow_list": 0.2, "entity_tagger": 0.02}


class Made:
    """Rows, scores and reports of cells, as nats a word over known words; all words have ``more`` on top."""

    def __init__(self, folder):
        self.folder, self.rows = folder, []
        (folder / "reports").mkdir()

    def cell(self, technique, method, nats, filler=None, spread=0.0, more=0.0):
        """``spread``: how much the model's sentences differ from another's, so that pairs are told apart or not."""
        seed = None if method == "pretrained" else 1
        path = "/".join(part for part in ("mail", technique) if part)
        name = "-".join(str(part) for part in (filler, method, seed) if part is not None)
        lines = np.arange(1, SENTENCES + 1)
        known = -10.0 * (nats + spread * np.where(lines % 2, 1, -1))
        targets = np.full(SENTENCES, 10)
        file = self.folder / "scores" / path / f"{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        sums = {"all": SentenceSums(targets, known - 10.0 * more), "known": SentenceSums(targets, known)}
        write_scores(file, SentenceScores(lines, sums), "ppl")
        row = {"dataset": "mail", "technique": technique, "method": method, "filler": filler, "filler_base": None}
        row |= {"seed": seed, "perplexity": math.exp(nats + more), "perplexity_known": math.exp(nats)}
        row |= {"masked_fraction": MASKED.get(technique), "sentences": SENTENCES, "oov_rate": 0.02}
        self.rows.append(row | {"signature": "ppl", "attackers": {}})

    def report(self, name, stage, measured, **fields):
        path = self.folder / "reports" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = {"version": 1, "stage": stage, "measured": measured}
        known |= {name: {} for name in ("cell", "parameters", "outputs", "inputs")}
        path.write_text(json.dumps(known | fields), encoding="utf-8")

    def leak(self, technique=None, method=None, **figures):
        """Figures of all rows of a technique and method, each with its interval: ``reidentified=(0.04, [0.03, 0.06])``.
        Figures of attacks come with an attacker."""
        for row in self.rows:
            if row["technique"] and technique in (None, row["technique"]) and method in (None, row["method"]):
                for name, (value, interval) in figures.items():
                    row |= {name: value, f"{name}_ci": interval}
                if any(not name.startswith(("unmasked", "recall")) for name in figures):
                    row["attackers"] = {"reidentified_1": "a model that guesses"}

    def said(self, at_most=None, passes=True):
        """The verdict with at most 20 unmasked direct identifiers; ``passes``: what the gate of releases says."""
        self.asked = []

        def outcome(cell):
            self.asked.append(cell)
            command = f"palimpsest release {cell} --name mail_1" if passes else None
            return Outcome(passes, command, [] if passes else ["Review 80 more lines."])

        limits = ReleaseSettings(at_most=at_most or {})
        (found,) = verdicts(self.rows, ReportIndex(self.folder / "reports"), self.folder / "scores", limits, outcome)
        return found


@pytest.fixture
def made(tmp_path):
    """A control that is lowest, a fill that cannot be told from it, and one that can; all better than not adapting."""
    made = Made(tmp_path)
    made.cell(None, "pretrained", 6.5, more=0.1)
    made.cell(None, "oracle", 4.0)
    made.cell("allow_list", "baseline1", 5.5, more=0.3)
    made.cell("allow_list", "top_k", 5.4, "minilm")
    made.cell("allow_list", "log_linear", 5.01, "minilm", spread=0.5)
    made.cell("allow_list", "surrogate", 5.0)
    made.cell("entity_tagger", "baseline1", 4.2)
    made.cell("entity_tagger", "top_k", 4.1, "minilm")
    return made


REVIEWED, WIDE, MANY = (3.0, [0.5, 12.0]), (3.0, [0.5, 21.0]), (50.0, [30.0, 80.0])
LITTLE, MUCH = (0.04, [0.03, 0.06]), (0.2, [0.1, 0.3])


@pytest.mark.parametrize(
    ("allow_list", "entity_tagger", "cell", "reason"),
    [
        # (unmasked direct identifiers, recall, words recovered) of the surrogates of the first and Top-K of the second.
        ((REVIEWED, 0.9, LITTLE), (MANY, 0.5, LITTLE), "allow_list/surrogate-1", "the only cell within all limits"),
        # Both pass: the entity tagger's has a lower perplexity.
        ((REVIEWED, 0.9, LITTLE), (REVIEWED, 0.5, LITTLE), "entity_tagger/minilm-top_k-1", "Of 2 cells within"),
        # The upper end of the review's interval is above 20.
        ((WIDE, 0.9, LITTLE), (MANY, 0.5, LITTLE), "allow_list/surrogate-1", "masks the most .* 90.0 % by review"),
        ((WIDE, 0.5, LITTLE), (MANY, 0.9, LITTLE), "entity_tagger/minilm-top_k-1", "most .* 90.0 % by review"),
        # An attack finds more than is allowed.
        ((REVIEWED, 0.9, MUCH), (REVIEWED, 0.5, LITTLE), "entity_tagger/minilm-top_k-1", "the only cell"),
        # Not attacked.
        ((REVIEWED, 0.9, None), (REVIEWED, 0.5, LITTLE), "entity_tagger/minilm-top_k-1", "the only cell"),
        ((REVIEWED, 0.9, None), (MANY, 0.5, LITTLE), "allow_list/surrogate-1", "No cell is within all limits"),
    ],
)  # fmt: skip
def test_the_rule(made, allow_list, entity_tagger, cell, reason):
    techniques = {"allow_list": (allow_list, "surrogate"), "entity_tagger": (entity_tagger, "top_k")}
    for technique, ((unmasked, recall, recovered), method) in techniques.items():
        made.leak(technique, unmasked_direct=unmasked, recall_direct=(recall, None))
        if recovered:
            made.leak(technique, method, reidentified=recovered)
    for row in made.rows:
        row["unmasked_by"] = "review"
    said = made.said({"reidentified": 0.1})
    assert said.cell.path == f"mail/{cell}"
    assert re.search(reason, said.reason)
    assert made.asked == [f"mail/{cell}"]


def test_of_those_that_do_not_differ_the_lowest_over_all_words(made):
    made.leak("allow_list", unmasked_direct=REVIEWED, reidentified=LITTLE)
    assert made.said().sections["Why this one"] == [
        "Its perplexity is significantly lower than that of Top-K fill with MiniLM.",
        "Not significantly different: log-linear fill with MiniLM; over all words it has 148.4.",
        "It needs no infilling model.",
    ]
    made.rows = [row for row in made.rows if row["method"] != "surrogate"]
    made.cell("allow_list", "surrogate", 4.99, more=0.6)
    made.leak("allow_list", unmasked_direct=REVIEWED, reidentified=LITTLE)
    assert made.said().use == "Mask with the allow list, fill with the log-linear method (MiniLM)."


def test_the_box(made):
    made.leak("allow_list", unmasked_direct=REVIEWED, reidentified=LITTLE, gap_closed_known=(0.333, [0.3, 0.366]))
    made.report("audit/mail/allow_list/surrogate-1", "audit", {}, parameters={"effort": "quick"})
    measured = {"techniques": {"allow_list": {"by": "review", "basis": "150 lines read by 1 reviewer"}}}
    made.report("unmasked/mail", "unmasked", measured)
    assert made.said().lines() == [
        "mail: Mask with the allow list, fill with the surrogate method.",
        "  Of 3 cells within all limits of a release with its model it has the lowest perplexity.",
        "Quality: perplexity 148.4 (in-vocabulary words), 54.6 (raw text, Oracle), 244.7 (masked, not filled,",
        "  Baseline1). It closes 33 [30, 37] % of the gap from Baseline1 to Oracle (log scale).",
        "Leakage                                         result           chance  reading",
        "  Unmasked direct identifiers, per 1,000 lines  3.0 [0.5, 12.0]          within the limit, 20",
        "  Masked words recovered, top-1, %              4.0 [3.0, 6.0]           some",
        "  Unmasked identifiers by review: 150 lines read by 1 reviewer.",
        "  audit.effort: full runs shadow models and a larger attacker; it finds more.",
        "Can it be released now? Yes: palimpsest release mail/allow_list/surrogate-1 --name mail_1",
    ]
    assert all(len(line) <= 100 for line in made.said().lines())
    # A command that would be refused is not printed.
    refused = made.said(passes=False).lines()
    assert refused[refused.index("Can it be released now? No.") + 1] == "  - Review 80 more lines."
    assert "palimpsest release" not in "\n".join(refused)


@pytest.mark.parametrize(
    ("name", "value", "interval", "blind", "reading"),
    [
        ("reidentified", 0.012, [0.008, 0.016], 0.01, "no signal"),
        ("reidentified", 0.111, [0.08, 0.13], 0.01, "strong"),
        ("exposure", 4.5, [4.2, 4.8], 1.4, "strong"),
        # A wide interval that includes chance is no signal, whatever the value.
        ("exposure", 4.5, [1.0, 8.0], 1.4, "no signal"),
        ("membership_auc", 0.69, [0.67, 0.71], 0.5, "some"),
        ("membership_auc", 0.70, [0.68, 0.72], 0.5, "strong"),
        ("extracted", 0.014, [0.008, 0.016], 0.003, "strong"),
    ],
)
def test_how_a_figure_reads(name, value, interval, blind, reading):
    row = {name: value, f"{name}_ci": interval, f"{name}_blind": blind}
    assert signal([row], name) == reading


def test_the_strongest_membership_attack_that_was_run_has_a_row():
    row = {"membership_auc": 0.56, "membership_lira_auc": 0.76, "membership_neighbourhood_auc": 0.58}
    (found,) = readings([row], 20.0)
    assert (found.attack, found.reading) == ("Membership inference (shadow models, LiRA), AUC", "strong")


def test_without_any_count_the_technique_that_masks_most_if_it_leaves_half_of_the_words(made):
    assert made.said().cell.technique == "allow_list"
    for row in made.rows:
        if row["technique"] == "allow_list":
            row["masked_fraction"] = 0.72
    assert made.said().cell.technique == "entity_tagger"


def test_a_sample_is_called_one_and_the_command_for_the_whole_text_is_printed(made):
    corpus = {"left_out": {"beyond_limit": 70}, "sentences": {"train": 20, "valid": 4, "test": 6}}
    source = {"kind": "files", "source": "data/raw/mail.csv", "text_field": "body"}
    for measured, whole in ((corpus, "30 of 100"), (corpus | {"left_out": {"beyond_limit": 0}}, "")):
        made.report("corpora/mail", "corpora", measured, parameters=source)
        verdict = made.said()
        command = f"palimpsest apply {verdict.cell.path} --input data/raw/mail.csv"
        command += " --output data/private/applied/mail --text-field body"
        sentence = f"The run saw a sample: {whole} sentences. To mask and fill all of them: {command}"
        assert [line for line in verdict.lines() if "apply" in line] == ([sentence] if whole else [])
