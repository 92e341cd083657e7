"""The recogniser that is in git is not trained again: what it was trained on comes out of the packages as it was."""

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from tasks.cli import main

ROOT = Path(__file__).parents[2]


def test_its_training_text_is_the_one_in_the_lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    out = tmp_path / "speech_text"
    assert main(["corpora", "--params", "params.yaml", "--name", "speech.text", "--output", str(out)]) == 0
    lock = yaml.safe_load((ROOT / "dvc.lock").read_text(encoding="utf-8"))
    (recorded,) = (part for part in lock["stages"]["train_recogniser@recogniser"]["deps"] if "md5" in part)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    # As DVC hashes a folder.
    listed = [{"md5": hashlib.md5(path.read_bytes()).hexdigest(), "relpath": path.name} for path in files]
    assert recorded["path"] == "data/speech_text"
    assert [path.name for path in files] == ["test.txt", "train.txt", "valid.txt"]
    assert hashlib.md5(json.dumps(listed).encode()).hexdigest() + ".dir" == recorded["md5"]
