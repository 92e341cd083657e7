"""Methods that ask the downstream language model have stages of their own, and cells like all others."""

import shutil
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo

from tasks.errors import ParameterError
from tasks.parameters.parameter_file import read_parameters
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells, fill_report, stage_name

ROOT = Path(__file__).parents[2]
CELL = Cell("chat", "allow_list", "downstream", "minilm", 1)


@pytest.fixture
def document():
    return yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def written(document, folder):
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_the_cell_is_expected_and_its_stages_are_in_the_graph(document, tmp_path):
    document["compare"] |= {"techniques": ["allow_list"], "language_model_methods": ["downstream"]}
    document["compare"] |= {"large_techniques": []}
    parameters = read_parameters(written(document, tmp_path))
    assert CELL in expected_cells(parameters.compare)
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    with Repo.init(str(tmp_path), no_scm=True) as repository:
        stages = {stage.name: stage for stage in repository.index.stages if stage.cmd}

    def depends_on(name, path):
        return any(str(dependency).endswith(path) for dependency in stages[name].deps)

    fill = stages["fill_with_language_model@chat-allow_list-minilm-downstream-1"]
    assert depends_on(fill.name, "models/pretrained")
    assert not [name for name in stages if name.startswith("fill@") and depends_on(name, "models/pretrained")]
    outputs = [Path(str(out)).as_posix() for out in fill.outs]
    assert any(out.endswith(f"results/reports/{fill_report(CELL).as_posix()}") for out in outputs)
    (text,) = [out for out in outputs if out.endswith(".txt")]
    assert depends_on(stage_name(CELL, "adapt"), text[text.index("data/obfuscated") :])
    assert stage_name(CELL, "evaluate") in stages


@pytest.mark.parametrize(
    ("dimension", "name", "says"),
    [
        ("language_model_methods", "top_k", "compare.language_model_methods: 'top_k' is no key of 'filling' that fits"),
        ("methods", "downstream", "compare.methods: 'downstream' is no key of 'filling' that fits"),
        ("tuned_methods", "downstream", "compare.tuned_methods: 'downstream' is no key of 'filling' that fits"),
    ],
)
def test_a_method_of_the_other_group_is_an_error(document, tmp_path, dimension, name, says):
    document["compare"][dimension] = [name]
    with pytest.raises(ParameterError, match=says):
        read_parameters(written(document, tmp_path))


@pytest.mark.parametrize(("name", "kind"), [("weighed", "downstream"), ("downstream_top", "top_1")])
def test_the_name_says_the_group(document, tmp_path, name, kind):
    document["filling"][name] = {"kind": kind}
    with pytest.raises(ParameterError, match=f"filling: '{name}' is of kind '{kind}'"):
        read_parameters(written(document, tmp_path))
