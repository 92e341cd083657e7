import shutil
from typing import get_args

import yaml
from dvc.repo import Repo
from handmade_experiment import ROOT
from stage_commands import parsed

from tasks.language_model.adapt import COMMAND as ADAPT
from tasks.language_model.settings import DifferentialPrivacy, MarkerUse
from tasks.languages.conclusion import COMMAND as CONCLUSION
from tasks.parameters.cells_file import graph_cells, write_cells
from tasks.parameters.compare_settings import CompareSettings, Fills
from tasks.parameters.parameter_file import read_parameters
from tasks.records.cells import BASELINES, expected_cells, is_filled, stage_name

COMPARE = CompareSettings(
    datasets=["chat", "mail"],
    techniques=["allow_list", "entity_tagger"],
    baselines=["baseline1"],
    private={
        "dp_sgd_8": DifferentialPrivacy(epsilon=8.0),
        "dp_sgd_document": DifferentialPrivacy(epsilon=0.5, unit="document", batch_units=64),
    },
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
    # Per dataset: pretrained, 2 Oracles, 2 x 2 with DP-SGD, and per technique (1 baseline + 2 fillers x 1 method + 1
    # tuned filler x 1 method + 1 control) x 2 seeds; and the large filler for one technique.
    assert len(cells) == len(set(cells)) == 2 * (1 + 2 + 4 + 2 * 5 * 2 + 2)
    masked = ("baseline1", "minilm-top_k", "other-top_k", "again-top_1", "unigram")
    ordered = ["oracle", "dp_sgd_8", "dp_sgd_document", *(f"allow_list/{name}" for name in masked)]
    paths = [f"chat/{name}-{seed}" for name in ordered for seed in (1, 2)]
    assert [cell.path for cell in cells[:17]] == ["chat/pretrained", *paths]


def test_every_cell_has_its_stages_in_the_graph(tmp_path):
    """For several datasets, fillers and seeds; a filler is made where it fills, or one that fills is tuned from it."""
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    document["compare"] = COMPARE.model_dump()
    document["corpora"] = dict.fromkeys(COMPARE.datasets, document["corpora"]["chat"])
    document["corpora"]["mail"] = {"kind": "files", "source": "data/raw/mail.csv", "label_field": "mood"}
    document["compare"]["conclusions"] = {"mail": {"languages": ["mr", "en"], "language_labels": "data/raw/mr.jsonl"}}
    document["conclusion"] = {"level": 0.05}
    document["fillers"] = dict.fromkeys(["minilm", "other", "large", "idle"], document["fillers"]["minilm"])
    document["tuned_fillers"] = TUNED
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    assert write_cells(read_parameters(tmp_path / "params.yaml"), tmp_path)
    with Repo.init(str(tmp_path), no_scm=True) as repository:
        stages = {stage.addressing.split(":")[-1]: stage for stage in repository.index.stages}

    trained = {name: parsed(stage)[1] for name, stage in stages.items() if name.startswith("adapt@mail-dp_sgd")}
    invocation = ADAPT.parse(trained["adapt@mail-dp_sgd_document-2"])
    assert invocation.settings.adaptation.private == COMPARE.private["dp_sgd_document"]
    assert invocation.files.documents == "data/private/corpora/mail/train.documents"
    assert invocation.files.output == "data/private/models/mail/dp_sgd_document-2"
    assert ADAPT.parse(trained["adapt@mail-dp_sgd_8-1"]).settings.adaptation.private == COMPARE.private["dp_sgd_8"]

    def of_step(step):
        return {name for name in stages if name.startswith(f"{step}@")}

    cells = expected_cells(COMPARE)
    assert of_step("evaluate") == {stage_name(cell, "evaluate") for cell in cells}
    assert of_step("adapt") | {"pretrain"} == {stage_name(cell, "adapt") for cell in cells}
    filled = {stage_name(cell, "fill") for cell in cells if is_filled(cell)}
    assert of_step("fill") | of_step("fill_control") == filled
    assert of_step("train_filler") == {f"train_filler@{name}" for name in ("minilm", "other", "large")}
    assert len(of_step("tune_filler")) == 2 * 2 * 2

    def needed(stage):
        return {str(entry.def_path) for entry in stages[stage].deps}

    assert "models/tuned_fillers/mail/allow_list/once" in needed("tune_filler@mail-allow_list-again")
    assert "models/tuned_fillers/mail/allow_list/again" in needed("fill@mail-allow_list-again-top_1-2")
    assert of_step("conclusion") == {"conclusion@mail"}
    files = CONCLUSION.parse(parsed(stages["conclusion@mail"])[1]).files
    assert (files.pair, files.language_labels) == ("mr,en", "data/raw/mr.jsonl")
    assert files.labels == "data/private/corpora/mail/train.labels"
    assert "data/obfuscated/mail/allow_list/unigram-1.txt" in files.versions
    read = {"data/raw/mr.jsonl", "data/private/masked/mail/train", "data/obfuscated/mail"}
    assert read < needed("conclusion@mail")


def test_each_baseline_is_adapted_on_the_masked_text_with_its_own_use_of_markers():
    compare = COMPARE.model_copy(update={"baselines": list(BASELINES), "datasets": ["chat"]})
    parameters = read_parameters(ROOT / "params.yaml").model_copy(update={"compare": compare})
    uses = {}
    for row in graph_cells(parameters)["adapt"].values():
        masked = f"data/private/masked/chat/train/{row.get('technique')}/text.txt"
        assert (row["text"] == masked) == (row["method"] in BASELINES)
        if row["method"] in BASELINES:
            uses[row["method"]] = row["adapt"]["markers"]
    assert uses == {"baseline0": "token", "baseline1": "ignore", "redacted": "remove", "dropped": "drop"}
    assert set(uses.values()) | {"none"} == set(get_args(MarkerUse))
