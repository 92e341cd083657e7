"""``palimpsest cells``: what git has is current, and with bare DVC nothing runs before names and cells are checked."""

import os
import shutil
import sys
from contextlib import chdir
from itertools import cycle
from pathlib import Path

import forked_commands
import pytest
import yaml

from tasks.cli import main
from tasks.errors import ParameterError
from tasks.parameters.cells_file import NO_FILE, cells_text
from tasks.parameters.parameter_file import read_parameters

ROOT = Path(__file__).parents[2]
ATTACKS = ("x$(touch PWNED)", "x;touch PWNED;", "x'$(touch PWNED)'")
NAMES = ("templates", "allow_list", "crf", "minilm", "minilm_tuned", "top_k", "baseline1", "recogniser", 1)
"""One of every section whose names reach a command line, and a seed."""


def attacked(document, name, attack):
    """The parameters with the attack instead of a name, in ``compare`` and in the sections that give names."""
    sections = ("compare", "corpora", "masking", "taggers", "fillers", "tuned_fillers", "filling")
    changed = {key: _renamed(part, name, attack) if key in sections else part for key, part in document.items()}
    gold_sets = _renamed(document["masking_evaluation"]["gold_sets"], name, attack)
    changed["masking_evaluation"] = document["masking_evaluation"] | {"gold_sets": gold_sets}
    speech = {key: _renamed(document["speech"][key], name, attack) for key in ("corpora", "nbest")}
    return changed | {"speech": document["speech"] | speech}


def _renamed(value, name, attack):
    if isinstance(value, dict):
        return {
            attack if key == name else key: one if key in ("kind", "seed") else _renamed(one, name, attack)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_renamed(one, name, attack) for one in value]
    return attack if value == name else value


@pytest.fixture
def project(tmp_path):
    """The project with a corpus of its own, so that the stages that an attack is to reach come soon."""
    for name in ("dvc.yaml", "cells.yaml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("tasks/corpora", "tasks/parameters"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tasks/records").mkdir()
    shutil.copy(ROOT / "tasks/records/cells.py", tmp_path / "tasks/records")
    (tmp_path / "text.txt").write_text("".join(f"The dog number {number} sleeps here.\n" for number in range(40)))
    assert forked_commands.dvc(tmp_path, "init", "--quiet", "--no-scm").returncode == 0
    return tmp_path


def repro(project, *arguments):
    """Bare ``dvc repro``, which finds our commands as a user's shell does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DVC_NO_ANALYTICS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return forked_commands.dvc(project, "repro", *arguments, environment=environment)


def parameters():
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    cleaning = {"valid_sentences": 5, "test_sentences": 5}
    document["generic"] = {"kind": "files", "source": "text.txt", "cleaning": cleaning}
    document["corpora"]["chat"] = document["generic"]
    document["compare"]["recognisers"] = ["recogniser"]
    return document


@pytest.mark.parametrize(("name", "attack"), [("chat", ATTACKS[2]), *zip(NAMES, cycle(ATTACKS), strict=False)])
def test_the_check_finds_a_command_wherever_a_name_may_stand(tmp_path, monkeypatch, capsys, name, attack):
    monkeypatch.chdir(tmp_path)
    document = attacked(parameters(), name, attack)
    Path("params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    for options in (["--check", "ok"], []):
        assert main(["cells", *options]) == 1
        assert repr(attack) in capsys.readouterr().err
        assert list(Path().iterdir()) == [Path("params.yaml")]


def test_the_cells_in_git_are_those_of_the_shipped_parameters():
    assert (ROOT / "cells.yaml").read_text(encoding="utf-8") == cells_text(read_parameters(ROOT / "params.yaml"))


def test_masks_depend_on_the_users_own_word_lists(tmp_path, monkeypatch):
    def lists(**masking):
        document = parameters()
        document["masking"] |= masking
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        cells = yaml.safe_load(cells_text(read_parameters(tmp_path / "params.yaml")))["cells"]["mask"]
        return {cell["lists"] for cell in cells.values() if cell["technique"] == "allow_list"}

    assert lists() == {NO_FILE}
    assert lists(allow_list={"kind": "allow_list", "path": "data/raw/ours.txt"}) == {"data/raw/ours.txt"}
    two = {"en": "data/raw/en.txt", "es": "data/raw/es.txt"}
    assert lists(allow_list={"kind": "language_lists", "lists": two}) == {"data/raw"}
    with pytest.raises(ParameterError, match=r"masking\.allow_list: its lists are in 2 folders \(data/raw, other\)"):
        lists(allow_list={"kind": "language_lists", "lists": two | {"es": "other/es.txt"}})


def test_dvc_stops_with_one_line_where_cells_are_older(project):
    document = parameters()
    document["compare"]["seeds"] = [1, 2]
    (project / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    said = "cells.yaml is older than params.yaml; 'palimpsest cells' updates it"
    done = repro(project, "generic")
    assert done.returncode != 0
    assert said in done.stderr
    assert not (project / "data/generic").exists()
    with chdir(project):
        assert main(["cells"]) == 0
    assert "chat-oracle-2: *" in (project / "cells.yaml").read_text(encoding="utf-8")
    assert forked_commands.repro(project, "cells").returncode == 0


def test_dvc_runs_no_command_with_such_a_name(project):
    cells = (project / "cells.yaml").read_text(encoding="utf-8")
    # As if a name had reached this file unchecked, too.
    for attack, written in ((ATTACKS[0], cells), (ATTACKS[1], cells.replace("chat", ATTACKS[1]))):
        (project / "params.yaml").write_text(yaml.safe_dump(attacked(parameters(), "chat", attack)), encoding="utf-8")
        (project / "cells.yaml").write_text(written, encoding="utf-8")
        done = repro(project, "--keep-going")
        assert done.returncode != 0
        assert repr(attack) in done.stderr
    assert not (project / "PWNED").exists()
