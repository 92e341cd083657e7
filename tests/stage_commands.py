"""What the command lines of stages say, for tests that hold ``dvc.yaml`` against the code."""

import shlex
from contextlib import chdir

from dvc.dependency import ParamsDependency

from tasks.cli import command_parser, load_command, main


def parsed(stage):
    """The module and the parsed options of a stage's command."""
    words = shlex.split(stage.cmd)
    assert words[0] == "palimpsest"
    module = load_command(words[1])
    # Its cell is in cells.yaml.
    with chdir(stage.wdir):
        return module, command_parser(words[1], module).parse_args(words[2:])


def listed_sections(stage):
    """The key paths of ``params.yaml`` that a stage depends on."""
    file = ParamsDependency.DEFAULT_PARAMS_FILE
    return sorted(key for entry in stage.params if entry.def_path == file for key in entry.params)


def sections_of(stage):
    """The key paths of ``params.yaml`` that a stage's command reads."""
    module, arguments = parsed(stage)
    return sorted(module.COMMAND.parse(arguments).sections)


def make_vocabulary(text, path, *values):
    """The vocabulary of a text, by the two commands that make one; ``values``: settings such as ``size=30``."""
    assert main(["count-words", "--input", str(text), "--output", f"{path}.tsv"]) == 0
    assert main(["vocabulary", "--word-counts", f"{path}.tsv", "--output", str(path), *settings(*values)]) == 0


def settings(*values):
    """Options that set these, such as ``k=20``."""
    return [word for value in values for word in ("--set", value)]
