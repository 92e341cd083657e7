"""Fine-tuned fillers as stages: their cells are made as any other cell is, and parameters that make no sense are
refused with their key path."""

import copy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from dashboards.provenance import models
from tasks.errors import ParameterError
from tasks.language_model.settings import EvaluationSettings
from tasks.parameters.parameter_file import read_parameters
from tasks.results.findings.findings_claims import CONFIRMED, findings, is_fine_tuned
from tasks.results.findings.findings_comparison import Comparison, Condition, Experiment

ROOT = Path(__file__).parent.parent.parent
ROUNDS = {"filler": "minilm_tuned_round_2", "base": "minilm_tuned"}


@pytest.fixture
def document():
    return yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def with_compare(document, **changes):
    """The shipped parameters with one tuned filler and a second round of it, changed as asked for."""
    changed = copy.deepcopy(document)
    changed["compare"] |= {
        "tunings": [{"filler": "minilm_tuned", "base": "minilm"}],
        "tunings_again": [ROUNDS],
        "tuned_fillers": ["minilm_tuned", "minilm_tuned_round_2"],
        "tuned_methods": ["top_1"],
        **changes,
    }
    return changed


def write(document, folder) -> Path:
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("step", "filled"), [("fill", "fill"), ("adapt", "adapt_filled"), ("evaluate", "evaluate_filled")]
)
def test_a_tuned_fillers_cell_is_made_as_any_fillers_is(step, filled):
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    expected = yaml.safe_dump(stages[filled])
    for own, others in (
        ("${compare.tuned_fillers}", "${compare.fillers}"),
        ("${compare.tuned_methods}", "${compare.methods}"),
        ("models/tuned_fillers/${item.dataset}/${item.technique}/${item.filler}", "models/fillers/${item.filler}"),
    ):
        expected = expected.replace(others, own)
    assert stages[f"{step}_tuned"] == yaml.safe_load(expected)


def test_a_second_round_depends_on_the_first_of_its_cell(document, tmp_path):
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    write(with_compare(document, techniques=["allow_list", "entity_tagger"]), tmp_path)
    dvc = [sys.executable, "-m", "dvc"]
    subprocess.run([*dvc, "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        [*dvc, "stage", "list", "--name-only"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split()
    assert [name for name in listed if name.startswith("tune_filler")] == [
        "tune_filler@chat-allow_list-tuning0",
        "tune_filler@chat-entity_tagger-tuning0",
        "tune_filler_again@chat-allow_list-tuning0",
        "tune_filler_again@chat-entity_tagger-tuning0",
    ]
    edges = subprocess.run(
        [*dvc, "dag", "--dot", "fill_tuned@chat-allow_list-minilm_tuned_round_2-top_1-1"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    second = "tune_filler_again@chat-allow_list-tuning0"
    assert f'"tune_filler@chat-allow_list-tuning0" -> "{second}"' in edges
    assert f'"{second}" -> "fill_tuned@chat-allow_list-minilm_tuned_round_2-top_1-1"' in edges
    assert '"train_filler@minilm" -> "tune_filler@chat-allow_list-tuning0"' in edges
    assert "entity_tagger" not in edges


def test_a_large_filler_may_be_there_to_be_tuned_alone(document, tmp_path):
    """No cell of its own: it is made, tuned for each technique, and what comes out fills."""
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    tuning = {"filler": "smollm2_tuned", "base": "smollm2"}
    changes = {"tunings": [tuning], "tunings_again": [], "tuned_fillers": ["smollm2_tuned"], "large_techniques": []}
    path = write(with_compare(document, large_fillers=["smollm2"], **changes), tmp_path)
    assert read_parameters(path).compare.tunings[0].base == "smollm2"
    subprocess.run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        [sys.executable, "-m", "dvc", "stage", "list", "--name-only"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert "train_filler_large@smollm2" in listed
    assert "fill_tuned@chat-allow_list-smollm2_tuned-top_1-1" in listed
    assert not [name for name in listed if name.startswith("fill_large")]


def test_any_number_of_rounds(document, tmp_path):
    document["tuned_fillers"]["minilm_tuned_round_3"] = document["tuned_fillers"]["minilm_tuned_round_2"]
    third = {"filler": "minilm_tuned_round_3", "base": "minilm_tuned_round_2"}
    compare = read_parameters(write(with_compare(document, tunings_again=[ROUNDS, third]), tmp_path)).compare
    assert [tuning.base for tuning in compare.tunings_again] == ["minilm_tuned", "minilm_tuned_round_2"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tunings": [{"filler": "minilm_tund", "base": "minilm"}]}, "'minilm_tund' is no key of 'tuned_fillers' (did"),
        ({"tunings": [{"filler": "minilm_tuned", "base": "mpnet"}]}, "the base 'mpnet' of 'minilm_tuned' is not made"),
        ({"tunings_again": [{"filler": "minilm_tuned_round_2", "base": "minilm"}]}, "the base 'minilm' of"),
        ({"tunings": [{"filler": "smollm2_tuned", "base": "minilm"}]}, "'causal_lm' is not that of its base 'minilm'"),
        ({"tunings": [{"filler": "minilm_tuned", "base": "minilm"}] * 2}, "a name stands twice"),
        ({"tunings_again": [{"filler": "minilm_tuned", "base": "minilm_tuned"}]}, "'minilm_tuned' is there already"),
        ({"tuned_fillers": ["minilm"]}, "compare.tuned_fillers: 'minilm' is not known"),
        ({"tuned_methods": ["unigram"]}, "compare.tuned_methods: 'unigram' is no key of 'filling' that fits"),
        ({"tunings": [{"filler": "minilm_tuned"}]}, "compare.tunings.0.base: is missing"),
    ],
)
def test_what_cannot_be_tuned_is_named(document, tmp_path, changes, says):
    with pytest.raises(ParameterError) as error:
        read_parameters(write(with_compare(document, **changes), tmp_path))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_names_say_what_was_tuned(document, tmp_path):
    tuned = document["tuned_fillers"]
    tuned["other_tuned"] = tuned["better_minilm"] = tuned["minilm_tuned"]
    document["fillers"]["bert_tuned"] = document["fillers"]["minilm"]
    changed = with_compare(document, tunings_again=[], tuned_fillers=[])
    changed["compare"]["tunings"] = [{"filler": "other_tuned", "base": "minilm"}]
    with pytest.raises(ParameterError) as error:
        read_parameters(write(changed, tmp_path))
    text = str(error.value)
    assert "compare.tunings: 'other_tuned' does not say that it is 'minilm' fine-tuned; call it 'minilm_tuned'" in text
    assert "fillers: 'bert_tuned' is called as fillers are that are tuned on a masked corpus" in text
    assert "tuned_fillers: 'better_minilm' needs a name with '_tuned' or '_round_2' at its end" in text


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
            "seed": 1,
            "perplexity": value,
        }
        for filler, value in (("minilm", 200.0), ("minilm_tuned", 150.0), ("minilm_tuned_round_2", 100.0))
    ]
    third = findings(Sharp(rows))[2]
    assert third.claim == "Fine-tuned fillers beat pretrained ones."
    assert third.verdict == CONFIRMED
    assert [round(comparison.ratio, 6) for comparison in third.comparisons] == [0.75, 0.5]
    assert is_fine_tuned(Condition("chat", "allow_list", "top_k", "minilm_tuned_round_2"))


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
