"""The kind of downstream model: each stage depends on the section of its own kind, and on no other's."""

import shutil
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo
from stage_commands import listed_sections, sections_of

from tasks.errors import ModelError
from tasks.language_model.adapt import COMMAND

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["ngram", "causal_lm"])
def test_a_stage_depends_on_the_section_of_its_kind(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    for name in ("dvc.yaml", "cells.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    document["language_model"]["kind"] = kind
    Path("params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    with Repo.init(str(tmp_path), no_scm=True) as repository:
        stages = {stage.addressing: stage for stage in repository.index.stages if stage.cmd}
    trained = {name: stage for name, stage in stages.items() if name.startswith(("pretrain", "adapt@"))}
    assert len(trained) > 5
    for name, stage in trained.items():
        listed = listed_sections(stage)
        assert sections_of(stage) == listed, name
        kinds = {key for key in listed if key.split(".")[-1] in ("transformer", "ngram", "causal_lm")}
        assert kinds == {f"language_model.{kind}"}, name


def test_a_model_of_another_kind_than_the_parameters_ask_for_is_refused(tmp_path):
    (tmp_path / "settings.json").write_text('{"kind": "causal_lm"}', encoding="utf-8")
    arguments = ["--model", str(tmp_path), "--input", "text.txt", "--output", "model"]
    parser = COMMAND.parser("adapt", None)
    with pytest.raises(ModelError, match=r"is of kind 'causal_lm', and language_model\.kind is 'transformer'"):
        COMMAND.parse(parser.parse_args([*arguments, "--params", str(ROOT / "params.yaml")])).run()
    assert COMMAND.parse(parser.parse_args(arguments)).settings.kind == "causal_lm"
