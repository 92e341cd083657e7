import shutil

import yaml
from dvc.repo import Repo
from handmade_experiment import ROOT

from tasks.parameters.cells_file import write_cells
from tasks.parameters.compare_settings import CompareSettings, Fills
from tasks.parameters.parameter_file import read_parameters
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells, stage_name

COMPARE = CompareSettings(
    datasets=["chat", "mail"],
    techniques=["allow_list", "entity_tagger"],
    baselines=["baseline1"],
    fills=[
        Fills(filler="minilm", methods=["top_k"]),
        Fills(filler="other", methods=["top_k"]),
        Fills(filler="large", methods=["sample"], techniques=["entity_tagger"]),
        Fills(filler="again", methods=["top_1"]),
        Fills(methods=["unigram"]),
    ],
    seeds=[1, 2],
    taggers=[],
    detectors=[],
    gold_sets=[],
)
TUNED = {
    "once": {"base": "minilm", "kind": "masked_lm"},
    "again": {"base": "once", "kind": "masked_lm"},
    "unused": {"base": "nowhere", "kind": "masked_lm"},
}


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
        "chat/allow_list/again-top_1-1",
        "chat/allow_list/again-top_1-2",
        "chat/allow_list/unigram-1",
        "chat/allow_list/unigram-2",
    ]


def test_stage_names_of_a_filled_cell_and_of_the_references():
    filled = Cell("chat", "allow_list", "top_k", "minilm", 1)
    assert stage_name(filled, "evaluate") == "evaluate@chat-allow_list-minilm-top_k-1"
    assert stage_name(filled, "adapt") == "adapt@chat-allow_list-minilm-top_k-1"
    assert stage_name(Cell("chat", None, "oracle", None, 1), "evaluate") == "evaluate@chat-oracle-1"
    assert stage_name(Cell("chat", None, "pretrained"), "evaluate") == "evaluate@chat-pretrained"
    assert stage_name(Cell("chat", None, "pretrained"), "adapt") == "pretrain"
    assert stage_name(Cell("chat", None, "no_language_model"), "evaluate") == "recognise@chat-no_language_model"


def test_every_cell_has_its_stages_in_the_graph(tmp_path):
    """For several datasets, fillers and seeds; a filler is made where it fills, or one that fills is tuned from it."""
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    document["compare"] = COMPARE.model_dump()
    document["corpora"] = dict.fromkeys(COMPARE.datasets, document["corpora"]["chat"])
    document["fillers"] = dict.fromkeys(["minilm", "other", "large", "idle"], document["fillers"]["minilm"])
    document["tuned_fillers"] = TUNED
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    assert write_cells(read_parameters(tmp_path / "params.yaml"), tmp_path)
    with Repo.init(str(tmp_path), no_scm=True) as repository:
        stages = {stage.addressing.split(":")[-1]: stage for stage in repository.index.stages}

    def of_step(step):
        return {name for name in stages if name.startswith(f"{step}@")}

    cells = expected_cells(COMPARE)
    assert of_step("evaluate") == {stage_name(cell, "evaluate") for cell in cells}
    assert of_step("adapt") | {"pretrain"} == {stage_name(cell, "adapt") for cell in cells}
    assert of_step("fill") == {stage_name(cell, "fill") for cell in cells if cell.technique} - {
        f"fill@{dataset}-{technique}-baseline1-{seed}"
        for dataset in COMPARE.datasets
        for technique in COMPARE.techniques
        for seed in COMPARE.seeds
    }
    assert of_step("train_filler") == {f"train_filler@{name}" for name in ("minilm", "other", "large")}
    assert of_step("tune_filler") == {
        f"tune_filler@{dataset}-{technique}-{name}"
        for dataset in COMPARE.datasets
        for technique in COMPARE.techniques
        for name in ("once", "again")
    }
    needed = {str(entry.def_path) for entry in stages["tune_filler@mail-allow_list-again"].deps}
    assert "models/tuned_fillers/mail/allow_list/once" in needed
    needed = {str(entry.def_path) for entry in stages["fill@mail-allow_list-again-top_1-2"].deps}
    assert "models/tuned_fillers/mail/allow_list/again" in needed
    assert of_step("examples") == {
        f"examples@{dataset}-{name}"
        for dataset in COMPARE.datasets
        for name in ("minilm", "other", "entity_tagger-large", "allow_list-again", "entity_tagger-again")
    }
