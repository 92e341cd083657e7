"""Profiles: sections that take the place of those in params.yaml, and the graphs of two of them."""

import math
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo
from stage_commands import listed_sections, sections_of

from tasks.cli import main
from tasks.errors import ParameterError
from tasks.parameters.cells_file import check_cells, write_cells
from tasks.parameters.parameter_file import read_parameters
from tasks.profiles.profile_command import profile_names, profile_text, read_profile
from tasks.records.cells import expected_cells, stage_name

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
    assert capsys.readouterr().out.split() == profile_names(ROOT)
    names = "default forgetting four_corpora paper quick real_speech smollm2 two_languages two_languages_speech"
    assert profile_names(ROOT) == names.split()
    for name in profile_names(ROOT):
        read_profile(name, ROOT)


def test_the_papers_profile_has_the_papers_sizes():
    parameters = read_profile("paper", ROOT)
    shape = parameters.language_model.architecture
    assert (shape.layers, shape.heads, shape.width) == (6, 12, 768)
    assert parameters.language_model.vocabulary.size == 85_000
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("papr", None, "there is no profile 'papr' (did you mean 'paper'?); there are: default, forgetting, "),
        ("bad", "corpra: {}\n", "unknown section 'corpra' (did you mean 'corpora'?)"),
        ("bad", "# nothing\n", "names no section"),
        ("bad", "evaluation: {bootstrap_samples: 3}\n", "profile 'bad': evaluation.bootstrap_samples: "),
    ],
)
def test_what_is_wrong_with_a_profile_is_said(project, name, content, message):
    if content is not None:
        (project / "profiles" / f"{name}.yaml").write_text(content)
    with pytest.raises(ParameterError) as error:
        read_profile(name)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("profile", "datasets", "numbers"),
    [
        # Three techniques, three fillers and as many fine-tuned ones, two methods; two controls.
        ("paper", ["wsj"], {"fill@": 3 * 6 * 2, "fill_control@": 3 * 2, "corpus@": 1, "pretrain": 1}),
        # Lists of another recogniser: every cell is rescored, and none is recognised.
        ("real_speech", ["books"], {"nbest@": 2, "recognise": 0, "encode@": 0, "speech@": 0, "train_recogniser": 0}),
    ],
    ids=["paper", "real_speech"],
)
def test_the_graph_of_a_profile_is_planned(tmp_path, monkeypatch, profile, datasets, numbers):
    """A stage of each step calls a command with options and parameters that it has."""
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    document = yaml.safe_load(profile_text(profile, ROOT))
    document["compare"] |= {"seeds": [1], "datasets": datasets}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    parameters = read_parameters(tmp_path / "params.yaml")
    write_cells(parameters, tmp_path)
    with Repo.init(str(tmp_path), no_scm=True) as repository:
        stages = {stage.name: stage for stage in repository.index.stages if stage.cmd}
    monkeypatch.chdir(tmp_path)
    assert {start: sum(name.startswith(start) for name in stages) for start in numbers} == numbers
    if profile == "real_speech":
        rescored = {stage_name(cell, "rescore") for cell in expected_cells(parameters.compare)}
        assert rescored == {name for name in stages if name.startswith("rescore")}
    for step, stage in {name.partition("@")[0]: stage for name, stage in stages.items()}.items():
        assert listed_sections(stage) == sections_of(stage), step


@pytest.mark.slow
def test_the_papers_language_model_is_built_and_learns():
    """At full size with random weights: 108 million parameters, and a loss that starts at the uniform one and falls."""
    import torch

    from tasks.language_model.transformer.model import TransformerLanguageModel

    settings = read_profile("paper", ROOT).language_model
    model = TransformerLanguageModel(settings.architecture, settings.vocabulary.size)
    model.initialise(1)
    assert model.parameter_count() == 108_005_376
    tokens = torch.arange(4, 36).view(2, 16)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model.logits(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    # Scores of fresh weights have a variance of 768 x 0.02² = 0.31, which adds half of that to the uniform loss.
    assert abs(losses[0] - math.log(85_000) - 0.15) < 0.3
    assert losses[-1] < losses[0] - 0.5
