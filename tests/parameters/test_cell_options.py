"""``--cell KEY``: a command finds the options of a cell, and says what is wrong with a key."""

import shutil

import pytest
from handmade_experiment import ROOT

from tasks.cli import command_parser, load_command, main


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("cells.yaml", "params.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def options(command, *words):
    return command_parser(command, load_command(command)).parse_args(words)


def test_options_after_the_cell_replace_those_of_the_cell(project):
    found = options("adapt", "--cell=chat-oracle-1", "--output", "elsewhere", "--set", "adaptation.epochs=2")
    assert (found.input, found.output) == ("data/private/corpora/chat/train.txt", "elsewhere")
    assert (found.cell, found.seed, found.params) == ("dataset=chat,method=oracle", 1, "params.yaml")
    assert found.overrides == ["adaptation.epochs=2"]


def test_options_of_missing_columns_are_left_out(project):
    assert options("fill", "--cell", "chat-allow_list-minilm-top_k-1").filler == "models/fillers/minilm"
    assert options("fill", "--cell", "chat-every_tagger-surrogate-1").filler is None
    given = "--technique crf --input a --output b --cell dataset=a".split()
    assert options("mask", *given).cell == "dataset=a"  # labels stay labels
    assert options("adapt", "--cell", "chat-allow_list-baseline1-1").markers == "ignore"
    assert options("fuse", "--cell", "chat-no_language_model").model is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("adapt --cell chat-orcale-1", "(did you mean 'chat-oracle-1'?)"),
        ("fill --cell chat-oracle-1", "--cell 'chat-oracle-1' is no cell of this step in cells.yaml"),
        ("corpora --cell dataset=chat --name generic --params params.yaml --output o",
            "no label 'dataset'; allowed: none"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_one_line(project, capsys, words, message):
    assert main(words.split()) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_cells_that_cannot_be_read_are_one_line(project, capsys):
    (project / "cells.yaml").write_text("<<<<<<< HEAD\ncells: {}\n", encoding="utf-8")
    assert main(["adapt", "--cell", "chat-oracle-1"]) == 1
    assert "'palimpsest cells' writes it again" in capsys.readouterr().err
    (project / "cells.yaml").unlink()
    assert main(["adapt", "--cell", "chat-oracle-1"]) == 1
    assert "there is no cells.yaml here; run in the project's folder" in capsys.readouterr().err
