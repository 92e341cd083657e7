"""``dvc.yaml`` held against the code and the design: what a stage reads is what it depends on."""

import shlex
from pathlib import Path

import pytest
from dvc.repo import Repo

from tasks.cli import command_parser, load_command
from tasks.files.paths_apart import check_options

ROOT = Path(__file__).parent.parent
RECORDINGS = ("dev_speech@", "test_speech@", "speech_references@", "mask_speech@", "encode_", "recognise_")
RECORDINGS += ("dev_nbest@", "test_nbest@", "nbest_references@", "mask_nbest@", "rescore_")
"""Beginnings of the names of stages whose outputs say what somebody said."""


@pytest.fixture(scope="module")
def stages():
    with Repo(str(ROOT)) as repository:
        return {stage.addressing: stage for stage in repository.index.stages if stage.cmd}


def parsed(stage):
    words = shlex.split(stage.cmd)
    assert words[0] == "palimpsest"
    module = load_command(words[1])
    return module, command_parser(words[1], module).parse_args(words[2:])


def test_every_stage_calls_a_command_with_options_that_it_has(stages):
    assert len(stages) > 50
    for stage in stages.values():
        parsed(stage)


def test_every_stage_depends_on_the_parameters_that_its_command_reads(stages):
    for name, stage in stages.items():
        module, arguments = parsed(stage)
        listed = sorted(key for dependency in stage.params for key in dependency.params)
        read = sorted(module.sections(arguments)) if getattr(arguments, "params", None) else []
        assert listed == read, name


def test_every_output_path_on_a_command_line_is_an_output_of_the_stage(stages):
    """What a command writes is what DVC tracks, and what it reads is a dependency."""
    for name, stage in stages.items():
        _, arguments = parsed(stage)
        tracked = [str(out) for out in stage.outs]
        needed = [str(dependency) for dependency in stage.deps]
        for option, value in vars(arguments).items():
            if not isinstance(value, str) or "/" not in value:
                continue
            inside = [path for path in tracked + needed if value == path or value.startswith(path + "/")]
            assert inside, f"{name}: --{option} {value}"


def test_no_stage_writes_what_it_reads(stages, tmp_path, monkeypatch):
    """Where everything that command lines name is there already, as in a second run."""
    monkeypatch.chdir(tmp_path)
    commands = [(*parsed(stage), shlex.split(stage.cmd)[1]) for stage in stages.values()]
    given = [value for _, arguments, _ in commands for value in vars(arguments).values()]
    paths = {Path(value) for value in given if isinstance(value, str) and "/" in value}
    for path in paths:
        (path.parent if path.suffix else path).mkdir(parents=True, exist_ok=True)
    for path in paths:
        if path.suffix:
            path.touch()
    for module, arguments, name in commands:
        check_options(module, command_parser(name, module), arguments)


def test_private_outputs_are_never_pushed(stages):
    private = [out for stage in stages.values() for out in stage.outs if str(out).startswith("data/private/")]
    masked = [out for stage in stages.values() for out in stage.outs if str(out).startswith("data/masked/")]
    assert private
    assert masked
    assert [str(out) for out in private + masked if out.can_push] == []


def test_only_private_stages_write_private_folders(stages):
    for name, stage in stages.items():
        writes_private = any(str(out).startswith("data/private/") for out in stage.outs)
        reads_raw_for_training = name.startswith(("corpus@", "mask@", "mask_test@", "gold@", "adapt_oracle@"))
        reads_raw_for_training |= name.startswith(RECORDINGS)
        assert writes_private == reads_raw_for_training, name
