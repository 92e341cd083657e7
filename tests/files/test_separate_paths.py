"""No output is an input or another output: refused before anything is read or written, and nothing is lost."""

from pathlib import Path

import pytest
import yaml

from tasks.cli import main

TEXT = "".join(f"line {number} of Zebulon Quux\n" for number in range(20))
ROOT = Path(__file__).parents[2]
MASK = "mask --technique allow_list --input text --output".split()
SMALL = ["--set", "cleaning={minimum_words: 1, valid_sentences: 1, test_sentences: 1}"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("source").mkdir()
    for name in ("text", "source/text.txt", "source/train.txt"):
        Path(name).write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_a_source_that_the_parameters_name_is_no_output(folder, capsys):
    shipped = (ROOT / "params.yaml").read_text(encoding="utf-8")
    own = yaml.safe_load(shipped) | {"corpora": {"chat": {"kind": "files", "source": "source"}}}
    Path("params.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    before = {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}
    given = ["--params", "params.yaml", "--name", "corpora.chat", "--private", "--output", "source"]
    assert main(["corpora", *given]) == 1
    assert "--output 'source' is setting 'source', which is read" in capsys.readouterr().err
    assert {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")} == before


def test_what_loses_nothing_is_allowed(folder):
    """Devices are shared, and a folder of text may hold its corpus, as long as nothing is read that is written."""
    assert main([*MASK, "/dev/null", "--sidecar", "/dev/null"]) == 0
    for _ in range(2):
        assert main(["corpora", "--set", "source=source/text.txt", "--output", "source", *SMALL]) == 0
        assert main([*MASK, "new", "--report", "new.json"]) == 0
