"""The verdict of experiments whose scores are made up: every sentence has ten words, and its nats are known."""

import json
import math

import numpy as np
import pytest
from handmade_experiment import make_experiment

from tasks.cli import main
from tasks.language_model.evaluation.sentence_scores import SentenceScores, write_scores
from tasks.language_model.settings import EvaluationSettings
from tasks.results.findings.findings_comparison import Experiment
from tasks.results.report_index import ReportIndex
from tasks.results.verdict import leaders, verdicts

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
        write_scores(file, SentenceScores(lines, targets, known - 10.0 * more, targets, known), "ppl")
        self.rows.append(
            {
                "dataset": "mail",
                "technique": technique,
                "method": method,
                "filler": filler,
                "filler_base": None,
                "seed": seed,
                "perplexity": math.exp(nats + more),
                "perplexity_known": math.exp(nats),
                "masked_fraction": MASKED.get(technique),
                "sentences": SENTENCES,
                "oov_rate": 0.02,
                "signature": "ppl",
            }
        )

    def report(self, name, stage, measured, **fields):
        path = self.folder / "reports" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = {
            "version": 1,
            "stage": stage,
            "cell": {},
            "parameters": {},
            "measured": measured,
            "outputs": {},
            "inputs": {},
        }
        path.write_text(json.dumps(known | fields), encoding="utf-8")

    def recall(self, technique, share):
        measured = {"technique": technique, "gold_set": "templates", "token": {"recall": share}}
        self.report(f"masking_evaluation/{technique}", "evaluate_masking", measured)

    def said(self, **limits):
        (found,) = verdicts(self.rows, ReportIndex(self.folder / "reports"), self.folder / "scores", limits)
        return found

    def text(self):
        return "\n".join(self.said().lines())


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


def test_a_fill_that_writes_masked_words_by_design_is_not_what_to_use(made):
    made.cell("allow_list", "sanitised", 4.1)
    assert "fill by sanitised" in made.said().use
    made.report("fill/mail/allow_list/sanitised-1", "fill", {}, parameters={"kind": "metric", "epsilon": 12.0})
    assert "fill by Surrogate" in made.said().use


def attacked(made, **figures):
    """Figures of the attacks by method, with their intervals; all others were not attacked."""
    for row in made.rows:
        found = figures.get(row["method"]) if row["technique"] == "allow_list" else None
        row["attackers"] = {"reidentified_1": "a model that guesses"} if found else {}
        row["reidentified"], row["reidentified_ci"] = found or (None, None)
        row["reidentified_blind"] = 0.01 if found else None


def test_limits_leave_what_is_known_to_meet_them(made):
    attacked(made, surrogate=(0.04, [0.03, 0.06]), log_linear=(0.02, [0.01, 0.03]), top_k=(0.2, [0.1, 0.3]))
    said = "Masked words that an attacker guesses at once, %: 4.0 [3.0, 6.0]; blind 1.0."
    assert said in made.text()
    said = made.said(reidentified=0.05)
    assert said.use == "mask by the allow list, fill by Log-linear, minilm"
    assert "It meets the limits: reidentified at most 0.05." in "\n".join(said.lines())
    none = made.said(reidentified=0.001)
    assert none.cell is None
    assert none.use == "no cell is known to meet the limits: reidentified at most 0.001"
    why = "\n".join(none.sections["Why"])
    assert "Top-K, minilm, allow list; Log-linear, minilm, allow list; Surrogate, allow list: is above a limit." in why
    assert "Baseline1, entity tagger; Top-K, minilm, entity tagger: was not attacked" in why
    assert "cannot be told from a limit" in "\n".join(made.said(reidentified=0.02).sections["Why"])


def test_the_most_careful_technique_and_its_lowest_fill_with_those_that_are_alike(made):
    made.recall("allow_list", 0.95)
    made.recall("entity_tagger", 0.6)
    text = made.text()
    assert text.startswith("Verdict for mail: mask by the allow list, fill by Surrogate.")
    assert "masks 20.0% of the words and 95.0% of the private words of the labelled text (templates, made up)" in text
    assert (
        "Surrogate has a perplexity of 148.4 over known words (adapted on the raw text: 54.6), below Top-K, minilm and "
        "Baseline1 by paired intervals." in text
    )
    assert "Not told apart there: Log-linear, minilm. Of these it is lowest over all words, 148.4." in text
    assert "It needs no language model to fill." in text
    assert "The entity tagger masks 2.0% of the words, and leaves 40.0% of the labelled private words in clear" in text
    assert "Few test sentences (60)" in text
    assert "One seed" in text


def test_without_labelled_text_the_one_that_masks_most_is_named_if_it_leaves_half_else_the_one_that_misses_least(made):
    assert made.said().cell.technique == "allow_list"
    assert "no labelled text says what each of them misses" in made.text()
    for row in made.rows:
        if row["technique"] == "allow_list":
            row["masked_fraction"] = 0.72
    assert made.said().cell.technique == "entity_tagger"
    assert "masks 2.0% of the words, more than any other that leaves half of them" in made.text()
    for allow_list, entity_tagger, chosen in [(0.9, 0.5, "allow_list"), (0.8, 0.9, "entity_tagger")]:
        made.recall("allow_list", allow_list)
        made.recall("entity_tagger", entity_tagger)
        assert made.said().cell.technique == chosen


def test_adapting_that_makes_the_model_worse_is_a_sentence(made):
    made.rows = [row for row in made.rows if row["method"] != "pretrained"]
    made.cell(None, "pretrained", 4.9, more=0.5)
    assert (
        "Adapting on it made the model worse than not adapting it: 148.4 against 134.3 over known words." in made.text()
    )


def test_of_those_not_told_apart_the_lowest_over_all_words_is_used_and_one_that_is_lower_there_alone_is_said(made):
    made.rows = [row for row in made.rows if row["method"] != "surrogate"]
    made.cell("allow_list", "surrogate", 4.99, more=0.6)
    assert made.said().use.endswith("fill by Log-linear, minilm")
    made.rows = [row for row in made.rows if row["method"] not in ("surrogate", "log_linear")]
    made.cell("allow_list", "surrogate", 4.9, more=0.9)
    assert made.said().use.endswith("fill by Surrogate")
    assert "where <unk> counts as a word, Top-K, minilm is lower: 221.4 against 330.3." in made.text()


def test_where_the_text_and_the_model_lie(made):
    cell = {"dataset": "mail", "technique": "allow_list", "method": "surrogate", "filler": None, "seed": 1}
    made.report("fill/mail/allow_list/surrogate-1", "fill", {}, cell=cell, outputs={"data/obfuscated/x.txt": "0"})
    made.report("adapt/mail/allow_list/surrogate-1", "adapt", {}, cell=cell, outputs={"models/adapted/x": "0"})
    assert made.said().where == {
        "text": "data/obfuscated/x.txt",
        "model": "models/adapted/x",
        "to let it leave": "palimpsest release mail/allow_list/surrogate-1 --name mail_1",
    }


def test_only_what_is_told_apart_from_every_other_fill_leads(made):
    def found():
        experiment = Experiment(made.rows, made.folder / "scores", EvaluationSettings(bootstrap_samples=200))
        return leaders(experiment, "mail", known=True)

    assert found() == {"entity_tagger": ("top_k", "minilm")}
    made.rows = [row for row in made.rows if row["method"] != "log_linear"]
    assert found() == {"entity_tagger": ("top_k", "minilm"), "allow_list": ("surrogate", None)}


def test_advice_keeps_to_the_limits_that_are_typed_or_stand_in_the_parameters(tmp_path, monkeypatch, capsys):
    make_experiment(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["summarise"]) == 0
    capsys.readouterr()
    # Nothing of it was attacked, and release.at_most has a limit.
    assert main(["advise"]) == 0
    assert "no cell is known to meet the limits: exposure at most 2.5" in capsys.readouterr().out
    for option, says in (("exposur=2", "did you mean 'exposure'"), ("exposure", "is not of the form FIGURE=NUMBER")):
        assert main(["advise", "--at-most", "membership_auc=0.6", "--at-most", option]) == 1
        assert says in capsys.readouterr().err
