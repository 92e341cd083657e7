"""The graph of a profile whose data set has n-best lists of another recogniser instead of recordings."""

import shutil
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo
from stage_commands import listed_sections, parsed, sections_of

from tasks.errors import ParameterError
from tasks.parameters.cells_file import write_cells
from tasks.parameters.parameter_file import read_parameters
from tasks.profiles.profile_command import profile_text
from tasks.records.cells import NO_LANGUAGE_MODEL, expected_cells, stage_name, word_error_report

ROOT = Path(__file__).parents[2]
OF_LISTS = ("nbest@", "references@", "mask@speech-", "rescore")


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """The stages of the profile's graph with one seed, and methods of every kind."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "dvc.yaml", folder)
    document = yaml.safe_load(profile_text("real_speech", ROOT))
    document["compare"]["seeds"] = [1]
    document["compare"]["fills"] += [{"filler": "minilm_tuned", "methods": ["top_k"]}, {"methods": ["unigram"]}]
    (folder / "params.yaml").write_text(yaml.safe_dump(document))
    parameters = read_parameters(folder / "params.yaml")
    write_cells(parameters, folder)
    cells = expected_cells(parameters.compare)
    with Repo.init(str(folder), no_scm=True) as repository:
        return {stage.name: stage for stage in repository.index.stages if stage.cmd}, cells, folder


def paths(parts):
    """The paths of outputs or dependencies as ``dvc.yaml`` has them."""
    return [part.def_path for part in parts]


def test_every_cell_is_rescored_and_none_is_recognised(stages):
    by_name, cells, _ = stages
    expected = {stage_name(cell, "rescore"): word_error_report(cell) for cell in cells}
    assert expected.keys() == {name for name in by_name if name.startswith("rescore")}
    assert not any(name.startswith(("recognise", "encode@", "speech@", "train_recogniser")) for name in by_name)
    for name, report in expected.items():
        assert f"results/reports/{report}" in paths(by_name[name].outs)
    assert cells[0].method == NO_LANGUAGE_MODEL


def test_options_parameters_and_files_are_those_of_the_commands(stages, monkeypatch):
    monkeypatch.chdir(stages[2])
    checked = 0
    for name, stage in stages[0].items():
        if not name.startswith(OF_LISTS):
            continue
        assert listed_sections(stage) == sections_of(stage), name
        _, arguments = parsed(stage)
        tracked = paths([*stage.outs, *stage.deps])
        for option, value in vars(arguments).items():
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str) and "/" in path:
                    assert any(path == known or path.startswith(known + "/") for known in tracked), (name, option)
        checked += 1
    # Two imports, references, three techniques masked, no model, pretrained, Oracle, and five methods each.
    assert checked == 2 + 1 + 3 + 3 + 3 * 5


def test_what_was_said_is_never_pushed(stages):
    written = [out for name, stage in stages[0].items() if name.startswith(OF_LISTS) for out in stage.outs]
    kept = paths([out for out in written if not out.can_push])
    assert "data/private/nbest/books/test.jsonl.gz" in kept
    assert all(path.startswith("results/reports/") for path in paths(written) if path not in kept)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rescored_datasets", "book", "compare.rescored_datasets: 'book' is no key of 'speech.nbest' that fits"),
        ("speech_datasets", "books", "'books' is one of compare.speech_datasets too; a data set has one recogniser"),
    ],
)
def test_data_sets_that_make_no_sense_are_named(tmp_path, key, value, message):
    document = yaml.safe_load(profile_text("real_speech", ROOT))
    document["compare"][key] = [value]
    speech = {"kind": "manifest", "source": "data/raw/calls.jsonl"}
    document["speech"]["corpora"] = {"books": {"dev": speech, "test": speech}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(ParameterError) as error:
        read_parameters(tmp_path / "params.yaml")
    assert message in str(error.value)
