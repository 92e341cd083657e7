"""A stage leaves standard output to its text or its report (``--report -``)."""

import ast
import importlib
from pathlib import Path

import pytest

from tasks.cli import COMMANDS
from tasks.command import StageCommand

STAGES = sorted(
    name for name, module in COMMANDS.items() if isinstance(importlib.import_module(module).COMMAND, StageCommand)
)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_prints_to_standard_error_alone(name):
    source = Path(importlib.import_module(COMMANDS[name]).__file__).read_text()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    printed = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert [call.lineno for call in printed if "file" not in {each.arg for each in call.keywords}] == []
