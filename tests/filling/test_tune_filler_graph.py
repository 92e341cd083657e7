"""Fine-tuned fillers in an experiment: refused settings, findings and the report page."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from dashboards.provenance import models
from tasks.errors import ParameterError
from tasks.language_model.settings import EvaluationSettings
from tasks.parameters.parameter_file import read_parameters
from tasks.results.findings.findings_claims import CONFIRMED, findings
from tasks.results.findings.findings_comparison import Comparison, Experiment

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def document():
    return yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def write(document, folder) -> Path:
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_settings_of_tuned_fillers_have_their_key_paths(document, tmp_path):
    document["tuned_fillers"]["minilm_tuned"]["text"] = "filled"
    document["tuned_fillers"]["minilm_tuned_round_2"]["method"] = {"kind": "top_k", "kk": 3}
    document["tuned_fillers"]["smollm2_tuned"]["batch_pieces"] = 64
    with pytest.raises(ParameterError) as error:
        read_parameters(write(document, tmp_path))
    text = str(error.value)
    assert "tuned_fillers.minilm_tuned: text 'filled' needs a method that fills" in text
    assert "tuned_fillers.minilm_tuned_round_2.method.kk: unknown key (did you mean 'k'?)" in text
    assert "tuned_fillers.smollm2_tuned.batch_pieces: unknown key" in text


class Sharp(Experiment):
    """Ratios known to one per cent, so that the numbers of the rows decide."""

    def __init__(self, rows):
        super().__init__(rows, None, EvaluationSettings())

    def compare(self, first, second, expected, *, known=False):
        if second not in self.by_condition:
            return super().compare(first, second, expected, known=known)
        ratio = self.number(first, "perplexity") / self.number(second, "perplexity")
        place = first.dataset, str(first.technique), first.label, second.label
        return Comparison(*place, ratio, ratio * 0.99, ratio * 1.01, 1, expected)


def test_findings_hold_every_round_against_the_pretrained_filler():
    rows = [
        {
            "dataset": "chat",
            "technique": "allow_list",
            "method": "top_k",
            "filler": filler,
            "filler_base": None if filler == "minilm" else "minilm",
            "seed": 1,
            "perplexity": value,
        }
        for filler, value in (("minilm", 200.0), ("minilm_tuned", 150.0), ("minilm_tuned_round_2", 100.0))
    ]
    third = findings(Sharp(rows))[2]
    assert third.claim == "Fine-tuned fillers beat pretrained ones."
    assert third.verdict == CONFIRMED
    assert [round(comparison.ratio, 6) for comparison in third.comparisons] == [0.75, 0.5]


def test_the_report_page_says_what_a_tuned_filler_is():
    report = {
        "stage": "tune_filler",
        "cell": {"dataset": "chat", "technique": "allow_list", "filler": "minilm_tuned"},
        "parameters": {"base": "models/fillers/minilm", "kind": "masked_lm", "text": "filled"},
        "measured": {
            "steps": 60, "training_sentences": 7600, "base_held_out_perplexity": 232.71, "held_out_perplexity": 67.4,
        },
    }  # fmt: skip
    causal = {**report, "measured": {"steps": 1200, "training_sentences": 50, "held_out_loss": None}}
    first, second = models(SimpleNamespace(reports={"tuned_fillers/a": report, "tuned_fillers/b": causal})).rows
    assert first.label == "filler minilm_tuned (chat, allow list)"
    assert "models/fillers/minilm" in first.entries[0].text
    assert first.entries[1].text == (
        "fine-tuned here in 60 steps on 7,600 sentences of the filled corpus; perplexity of held-out unmasked words "
        "232.7 before, 67.4 after"
    )
    assert second.entries[1].text == "fine-tuned here in 1,200 steps on 50 sentences of the filled corpus"
