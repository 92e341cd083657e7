"""The recognisers that are in git are not trained again: what they were trained on comes out of the packages as it was,
by the settings that they were trained with."""

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from tasks.cli import main
from tasks.profiles.profile_command import profile_text

ROOT = Path(__file__).parents[2]


@pytest.mark.slow  # two corpora are read again; they change with the pinned packages alone
@pytest.mark.parametrize("profile", ["default", "two_languages_speech"])
def test_its_training_text_is_the_one_in_the_lock_file(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    out, params = tmp_path / "speech_text", tmp_path / "params.yaml"
    params.write_text(profile_text(profile, ROOT), encoding="utf-8")
    assert main(["corpora", "--params", str(params), "--name", "speech.text", "--output", str(out)]) == 0
    stages = yaml.safe_load((ROOT / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    parameters = yaml.safe_load(params.read_text(encoding="utf-8"))
    (name,) = parameters["compare"]["recognisers"] or ["recogniser"]
    locked = stages[f"train_recogniser@{name}"]
    assert locked["params"]["params.yaml"]["speech.recogniser"] == parameters["speech"]["recogniser"]
    (recorded,) = (part for part in locked["deps"] if "md5" in part)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    # As DVC hashes a folder.
    listed = [{"md5": hashlib.md5(path.read_bytes()).hexdigest(), "relpath": path.name} for path in files]
    assert recorded["path"] == "data/speech_text"
    assert [path.name for path in files] == ["test.txt", "train.txt", "valid.txt"]
    assert hashlib.md5(json.dumps(listed).encode()).hexdigest() + ".dir" == recorded["md5"]
