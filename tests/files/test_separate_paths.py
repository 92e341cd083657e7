"""No output is an input or another output: refused before anything is read or written, and nothing is lost."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tasks import cli
from tasks.files.separate_paths import refuse_unwritable

TEXT = "the cat of Zebulon Quux sat\n" * 12
COMMAND = [sys.executable, "-c", "import sys; from tasks.cli import main; sys.exit(main(sys.argv[1:]))"]
ROOT = Path(__file__).parents[2]
MASK = "mask --technique allow_list"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("text", "sidecar.jsonl", "counts.tsv"):
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    for name in ("model", "source"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "source" / "train.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "link").symlink_to("text")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_a_source_that_the_parameters_name_is_no_output(folder, capsys):
    shipped = (ROOT / "params.yaml").read_text(encoding="utf-8")
    own = yaml.safe_load(shipped) | {"corpora": {"chat": {"kind": "files", "source": "source"}}}
    (folder / "params.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    before = contents(folder)
    given = ["--params", "params.yaml", "--name", "corpora.chat", "--private", "--output", "source"]
    assert cli.main(["corpora", *given]) == 1
    assert "--output 'source' is setting 'source', which is read" in capsys.readouterr().err
    assert contents(folder) == before


def test_a_redirected_standard_output_is_written_into(folder):
    (folder / "out").write_text("first\n", encoding="utf-8")
    with open("out", "ab") as stdout:
        given = [*MASK.split(), "--input", "text", "--output", "/dev/stdout"]
        result = subprocess.run([*COMMAND, *given], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert (folder / "out").read_text(encoding="utf-8") == "first\n" + "the cat of [MASK] [MASK] sat\n" * 12


def test_what_loses_nothing_is_allowed(folder):
    """Devices are shared, and a folder of text may hold its corpus, as long as nothing is read that is written."""
    assert cli.main([*MASK.split(), "--input", "text", "--output", "/dev/null", "--sidecar", "/dev/null"]) == 0
    small = ["--set", "cleaning={minimum_words: 1, valid_sentences: 1, test_sentences: 1}"]
    (folder / "source" / "text.txt").write_text("".join(f"line {n} of text\n" for n in range(20)), encoding="utf-8")
    for _ in range(2):
        assert cli.main(["corpora", "--set", "source=source/text.txt", "--output", "source", *small]) == 0
        assert cli.main([*MASK.split(), "--input", "text", "--output", "new", "--report", "new.json"]) == 0


def test_stages_that_start_together_can_look_at_folders_that_are_not_there_yet(tmp_path):
    report = tmp_path / "reports" / "mask" / "chat" / "report.json"
    with ThreadPoolExecutor(4) as together:
        looks = [together.submit(refuse_unwritable, "--report", report, is_folder=False) for _ in range(1000)]
        for look in looks:
            look.result()
    assert not report.parent.exists()
