"""Profiles: sections that take the place of those in params.yaml."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
import yaml

from tasks.cli import main
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.parameters.cells_file import check_cells
from tasks.parameters.parameter_file import read_parameters
from tasks.profiles.profile_command import profile_names, profile_text, read_profile

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the shipped graph, parameters and profiles."""
    for name in ("dvc.yaml", "cells.yaml", "params.yaml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_shipped_profile_is_listed_and_valid(project, capsys):
    assert main(["profile"]) == 0
    names = "default forgetting four_corpora paper quick real_speech smollm2 two_languages two_languages_speech"
    assert capsys.readouterr().out.split() == profile_names(ROOT) == names.split()
    for name in profile_names(ROOT):
        read_profile(name, ROOT)


def test_the_papers_profile_has_the_papers_sizes():
    parameters = read_profile("paper", ROOT)
    settings = parameters.language_model
    shape = settings.architecture
    assert (shape.layers, shape.heads, shape.width) == (6, 12, 768)
    assert settings.vocabulary.size == 85_000
    with torch.device("meta"):  # without memory for the weights
        assert TransformerLanguageModel(shape, 85_000).parameter_count() == 108_005_376
    assert parameters.generic.kind == "wikitext"
    sizes = {name: parameters.corpora[name].cleaning.train_sentences for name in parameters.compare.datasets}
    assert parameters.compare.seeds == [1, 2]
    assert sizes == {"fisher": 1_158_496, "reddit": 763_683, "wsj": 6_000}
    models = [parameters.fillers[name].model for name in parameters.pretrained_fillers()]
    assert models == ["bert-base-uncased", "roberta-base", "meta-llama/Llama-2-7b-hf"]
    assert parameters.masking["entity_tagger"].tagger.model == "dslim/bert-base-NER"


def test_a_section_is_replaced_as_a_whole_and_of_compare_each_dimension_by_itself(project):
    profile = "corpora:\n  mail: {kind: files, source: data/mail}\ncompare:\n  # Many.\n  seeds: [1, 2, 3]\n"
    (project / "profiles" / "small.yaml").write_text(profile)
    default = yaml.safe_load((project / "params.yaml").read_text())
    assert yaml.safe_load(profile_text("small")) == default | {
        "corpora": {"mail": {"kind": "files", "source": "data/mail"}},
        "compare": default["compare"] | {"seeds": [1, 2, 3]},
    }
    assert "  # Many.\n  seeds: [1, 2, 3]\n" in profile_text("small")


def test_the_command_writes_params_yaml_and_git_keeps_what_would_be_lost(project, capsys):
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "."], check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *author, "commit", "-q", "-m", "first"], check=True)
    assert main(["profile", "paper"]) == 0
    assert read_parameters("params.yaml") == read_profile("paper", ROOT)
    check_cells(read_parameters("params.yaml"), project)
    assert main(["profile", "paper"]) == 1
    assert "has changes that git has not got" in capsys.readouterr().err
    assert main(["profile", "paper", "--force"]) == 0
