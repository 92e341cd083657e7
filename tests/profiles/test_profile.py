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
from tasks.records.cells import NO_LANGUAGE_MODEL, expected_cells, stage_name, word_error_report

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


def graph_in(folder, profile, **compare):
    """The stages with a command by name, and the cells, of a profile with changes of ``compare``."""
    shutil.copy(ROOT / "dvc.yaml", folder)
    document = yaml.safe_load(profile_text(profile, ROOT))
    document["compare"] |= compare
    (folder / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    parameters = read_parameters(folder / "params.yaml")
    write_cells(parameters, folder)
    with Repo.init(str(folder), no_scm=True) as repository:
        stages = {stage.name: stage for stage in repository.index.stages if stage.cmd}
    return stages, expected_cells(parameters.compare)


def test_the_papers_graph_is_planned(tmp_path, monkeypatch):
    """For one of its data sets; each stage calls a command with options and parameters that it has."""
    stages, _ = graph_in(tmp_path, "paper", seeds=[1], datasets=["wsj"])
    monkeypatch.chdir(tmp_path)
    techniques, fillers, methods = 3, 3, 2
    # Fine-tuned fillers fill the same; and two controls.
    assert sum(name.startswith("fill@") for name in stages) == 2 * techniques * fillers * methods
    assert sum(name.startswith("fill_control@") for name in stages) == techniques * 2
    assert {"corpus@wsj", "pretrain", "mask@train-wsj-entity_tagger"} <= stages.keys()
    for name, stage in stages.items():
        assert listed_sections(stage) == sections_of(stage), name


OF_LISTS = ("nbest@", "references@", "mask@speech-", "rescore")
"""Stages of a data set that has n-best lists of another recogniser instead of recordings."""


def paths(parts):
    """The paths of outputs or dependencies as ``dvc.yaml`` has them."""
    return [part.def_path for part in parts]


def test_with_lists_every_cell_is_rescored_none_is_recognised_and_no_reference_is_pushed(tmp_path, monkeypatch):
    known = read_profile("real_speech", ROOT).compare.model_dump()["fills"]
    fills = [*known, {"filler": "minilm_tuned", "methods": ["top_k"]}, {"methods": ["unigram"]}]
    stages, cells = graph_in(tmp_path, "real_speech", seeds=[1], fills=fills)
    monkeypatch.chdir(tmp_path)
    expected = {stage_name(cell, "rescore"): word_error_report(cell) for cell in cells}
    assert expected.keys() == {name for name in stages if name.startswith("rescore")}
    assert not any(name.startswith(("recognise", "encode@", "speech@", "train_recogniser")) for name in stages)
    for name, report in expected.items():
        assert f"results/reports/{report}" in paths(stages[name].outs)
    assert cells[0].method == NO_LANGUAGE_MODEL

    # Options, parameters and files are those of the commands.
    of_lists = {name: stage for name, stage in stages.items() if name.startswith(OF_LISTS)}
    # Two imports, references, three techniques masked, no model, pretrained, Oracle, and five methods each.
    assert len(of_lists) == 2 + 1 + 3 + 3 + 3 * 5
    for name, stage in of_lists.items():
        assert listed_sections(stage) == sections_of(stage), name

    written = [out for stage in of_lists.values() for out in stage.outs]
    private = paths([out for out in written if not out.can_push])
    assert "data/private/nbest/books/test.jsonl.gz" in private
    assert all(path.startswith("results/reports/") for path in paths(written) if path not in private)


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
