"""Tests of speech: transformers, which the tiny language models need, imports torchaudio; and commands of this room."""

import json

import pytest

from tasks.cli import main
from tasks.torch_setup import stand_in_for_torchaudio_extension

stand_in_for_torchaudio_extension()


@pytest.fixture
def measured(capsys):
    """Runs a command and gives what its report says was measured."""

    def run(*arguments):
        capsys.readouterr()
        assert main([*map(str, arguments), "--report", "-"]) == 0
        return json.loads(capsys.readouterr().out)["measured"]

    return run


@pytest.fixture
def refusal(capsys):
    """Runs a command that a user got wrong and gives the one line that says so."""

    def run(*arguments):
        capsys.readouterr()
        assert main([*map(str, arguments)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return run
