"""``dvc.yaml`` held against the code and the design: what a stage reads is what it depends on."""

import shutil
from pathlib import Path

import networkx as nx
import pytest
import yaml
from dvc.repo import Repo
from stage_commands import listed_sections, parsed, sections_of

from tasks.files.separate_paths import refuse_shared_paths
from tasks.options import Command
from tasks.parameters.cells_file import cells_text
from tasks.parameters.parameter_file import read_parameters
from tasks.profiles.profile_command import profile_names, profile_text

ROOT = Path(__file__).parent.parent
PUBLIC_TEXT = {"generic", "speech.text"}
"""Sections of ``params.yaml`` whose text is nobody's secret."""


@pytest.fixture(scope="module")
def stages():
    with Repo(str(ROOT)) as repository:
        return {stage.addressing: stage for stage in repository.index.stages if stage.cmd}


def test_every_stage_calls_a_command_and_depends_on_the_parameters_that_it_reads(stages):
    assert len(stages) > 50
    for name, stage in stages.items():
        assert listed_sections(stage) == sections_of(stage), name


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
    commands = [parsed(stage) for stage in stages.values()]
    given = [value for _, arguments in commands for value in vars(arguments).values()]
    paths = {Path(value) for value in given if isinstance(value, str) and "/" in value}
    for path in paths:
        (path.parent if path.suffix else path).mkdir(parents=True, exist_ok=True)
    for path in paths:
        if path.suffix:
            path.touch()
    for stage in stages.values():
        module, arguments = parsed(stage)
        command = module.COMMAND
        options = command.parse(arguments).options if isinstance(command, Command) else command.files_from(arguments)
        refuse_shared_paths(options.read(), options.written())


@pytest.fixture(scope="module", params=profile_names(ROOT))
def upstream(request, tmp_path_factory):
    """The stages before each stage, as DVC has them, with the shipped parameters and with those of each profile."""
    return upstream_in(tmp_path_factory.mktemp(request.param), profile_text(request.param, ROOT))


def upstream_in(folder, parameters, cells=None):
    shutil.copy(ROOT / "dvc.yaml", folder)
    (folder / "params.yaml").write_text(parameters, encoding="utf-8")
    (folder / "cells.yaml").write_text(cells or cells_text(read_parameters(folder / "params.yaml")), encoding="utf-8")
    with Repo.init(str(folder), no_scm=True) as repository:
        graph = repository.index.graph
        return {stage: nx.descendants(graph, stage) for stage in graph if stage.cmd}


def is_private_itself(stage, above):
    """A text that is not made here is somebody's secret, unless it is one of two; so is all below ``data/private``."""
    sections = {key for dependency in stage.params for key in dependency.params}
    brings_text = {before.name for before in above} <= {"cells"} and stage.name != "cells"
    return (brings_text and not sections <= PUBLIC_TEXT) or any(
        str(out).startswith("data/private") for out in stage.outs
    )


def test_nothing_that_has_private_text_upstream_is_pushed_and_all_else_may_be(upstream):
    private = {stage for stage, above in upstream.items() if is_private_itself(stage, above)}
    private |= {stage for stage, above in upstream.items() if above & private}
    assert [str(out) for stage in private for out in stage.outs if out.can_push] == []
    public = upstream.keys() - private
    assert [str(out) for stage in public for out in stage.outs if not out.can_push] == []
    held_open, steps = ({stage.name.split("@")[0] for stage in part} for part in (public, private))
    assert {"cells", "generic", "word_counts", "vocabulary", "pretrain"} <= held_open
    assert {"corpus", "adapt", "evaluate", "summarise", "report"} <= steps
    assert "train_filler" not in steps
    assert held_open.isdisjoint({"labelled_text", "fill", "unlearning", "audit"})


def test_no_stage_comes_before_the_check_of_the_parameters(upstream):
    unchecked = [stage.name for stage, above in upstream.items() if "cells" not in {one.name for one in above}]
    assert unchecked == ["cells"]


@pytest.mark.parametrize("techniques", [["t"], []])
def test_not_even_one_whose_name_fits_nothing_comes_before_the_check(tmp_path, techniques):
    """Each dimension has one name, which no section knows, and cells were not written again."""
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    document["compare"] = {key: [key] for key in document["compare"]} | {"techniques": techniques}
    source = {"source": "elsewhere"}
    document["corpora"] = {"a": source}
    document["masking_evaluation"]["gold_sets"] = {"b": source}
    document["speech"] |= {name: {"c": {"dev": source, "test": source}} for name in ("corpora", "nbest")}
    cells = (ROOT / "cells.yaml").read_text(encoding="utf-8").replace("chat", "another")
    test_no_stage_comes_before_the_check_of_the_parameters(upstream_in(tmp_path, yaml.safe_dump(document), cells))
