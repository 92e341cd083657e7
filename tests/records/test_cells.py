import shutil
import subprocess
import sys

from handmade_experiment import ROOT

from tasks.parameters.compare_settings import CompareSettings, Tuning
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells, stage_name

COMPARE = CompareSettings(
    datasets=["chat", "mail"],
    techniques=["allow_list", "entity_tagger"],
    baselines=["baseline1"],
    fillers=["minilm", "other"],
    methods=["top_k"],
    large_techniques=["entity_tagger"],
    large_fillers=["large"],
    large_methods=["sample"],
    tunings=[Tuning(filler="minilm_tuned", base="minilm")],
    tunings_again=[Tuning(filler="minilm_tuned_round_2", base="minilm_tuned")],
    tuned_fillers=["minilm_tuned_round_2"],
    tuned_methods=["top_1"],
    controls=["unigram"],
    seeds=[1, 2],
    taggers=[],
    detectors=[],
    gold_sets=[],
)


def test_every_cell_once_in_the_order_of_the_table():
    cells = expected_cells(COMPARE)
    # Per dataset: pretrained, 2 Oracles, and per technique (1 baseline + 2 fillers x 1 method + 1 tuned filler x 1
    # method + 1 control) x 2 seeds; and the large filler for one technique.
    assert len(cells) == len(set(cells)) == 2 * (1 + 2 + 2 * 5 * 2 + 2)
    assert [cell.path for cell in cells if cell.filler == "large"] == [
        f"{dataset}/entity_tagger/large-sample-{seed}" for dataset in ("chat", "mail") for seed in (1, 2)
    ]
    assert [cell.path for cell in cells[:13]] == [
        "chat/pretrained",
        "chat/oracle-1",
        "chat/oracle-2",
        "chat/allow_list/baseline1-1",
        "chat/allow_list/baseline1-2",
        "chat/allow_list/minilm-top_k-1",
        "chat/allow_list/minilm-top_k-2",
        "chat/allow_list/other-top_k-1",
        "chat/allow_list/other-top_k-2",
        "chat/allow_list/minilm_tuned_round_2-top_1-1",
        "chat/allow_list/minilm_tuned_round_2-top_1-2",
        "chat/allow_list/unigram-1",
        "chat/allow_list/unigram-2",
    ]


def test_stage_names_of_a_filled_cell_and_of_the_references():
    filled = Cell("chat", "allow_list", "top_k", "minilm", 1)
    assert stage_name(filled, "evaluate") == "evaluate_filled@chat-allow_list-minilm-top_k-1"
    assert stage_name(filled, "adapt") == "adapt_filled@chat-allow_list-minilm-top_k-1"
    tuned = Cell("chat", "allow_list", "top_k", "minilm_tuned", 1)
    assert stage_name(tuned, "evaluate") == "evaluate_tuned@chat-allow_list-minilm_tuned-top_k-1"
    generic = Cell("chat", "allow_list", "top_k", "smollm2_lora", 1)
    assert stage_name(generic, "adapt") == "adapt_filled@chat-allow_list-smollm2_lora-top_k-1"
    assert stage_name(Cell("chat", None, "oracle", None, 1), "evaluate") == "evaluate_oracle@chat-1"
    assert stage_name(Cell("chat", None, "pretrained"), "evaluate") == "evaluate_pretrained@chat"
    assert stage_name(Cell("chat", None, "pretrained"), "adapt") == "pretrain"


def test_every_cell_has_its_stages_in_the_graph(tmp_path):
    """The names computed here are those of ``dvc.yaml``, for several datasets, fillers and seeds."""
    import yaml

    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    parameters = yaml.safe_load((tmp_path / "params.yaml").read_text(encoding="utf-8"))
    parameters["compare"] = COMPARE.model_dump()
    parameters["corpora"] = dict.fromkeys(COMPARE.datasets, parameters["corpora"]["chat"])
    fillers = [*COMPARE.fillers, *COMPARE.large_fillers]
    parameters["fillers"] = dict.fromkeys(fillers, parameters["fillers"]["minilm"])
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")
    dvc = [sys.executable, "-m", "dvc"]
    subprocess.run([*dvc, "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        [*dvc, "stage", "list", "--name-only"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split()
    cells = expected_cells(COMPARE)
    large = COMPARE.large_fillers
    evaluated = [stage_name(cell, "evaluate", large) for cell in cells]
    assert sorted(evaluated) == sorted(name for name in listed if name.startswith("evaluate_"))
    trained = {stage_name(cell, "adapt", large) for cell in cells}
    assert trained == {name for name in listed if name.startswith(("adapt_", "pretrain"))}
