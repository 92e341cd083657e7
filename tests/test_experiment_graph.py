"""``dvc.yaml`` held against the code and the design: what a stage reads is what it depends on."""

import functools
import shutil
from pathlib import Path

import networkx as nx
import pytest
import yaml
from dvc.repo import Repo
from stage_commands import listed_sections, parsed, sections_of

from tasks.parameters import parameter_file
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


@pytest.fixture
def _read_once(monkeypatch):
    """Each command reads ``params.yaml``, which takes longer than all else here."""
    monkeypatch.setattr(parameter_file, "read_parameters", functools.cache(read_parameters))


@pytest.mark.usefixtures("_read_once")
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


@pytest.fixture(scope="module", params=profile_names(ROOT))
def profile(request):
    return request.param


@pytest.fixture(scope="module")
def upstream(profile, tmp_path_factory):
    """The stages before each stage, as DVC has them, with the shipped parameters and with those of each profile."""
    document = yaml.safe_load(profile_text(profile, ROOT))
    document["compare"] |= {"seeds": [1]} | ({"datasets": ["wsj"]} if profile == "paper" else {})
    return upstream_in(tmp_path_factory.mktemp(profile), yaml.safe_dump(document))


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


@pytest.mark.usefixtures("_read_once")
def test_the_steps_of_a_profile_have_its_stages_and_the_parameters_that_they_read(upstream, profile, monkeypatch):
    stages = {stage.name: stage for stage in upstream}
    monkeypatch.chdir(stages["cells"].wdir)
    if profile == "paper":
        # Three techniques, three fillers and as many fine-tuned ones, two methods; two controls.
        numbers = {"fill@": 3 * 6 * 2, "fill_control@": 3 * 2, "corpus@": 1, "pretrain": 1}
        assert {start: sum(name.startswith(start) for name in stages) for start in numbers} == numbers
    if profile == "real_speech":
        # Lists of another recogniser: every cell is rescored, and none is recognised.
        steps = {"recognise", "encode", "speech", "train_recogniser"}
        assert steps.isdisjoint(name.partition("@")[0] for name in stages)
    for step, stage in {name.partition("@")[0]: stage for name, stage in stages.items()}.items():
        assert listed_sections(stage) == sections_of(stage), step


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
