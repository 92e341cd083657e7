import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from spoken_tones import TINY, write_tones
from stage_commands import settings

from tasks import cli
from tasks.speech.recogniser.encoded_speech import read_encoded
from tasks.speech.recogniser.folder import load_recogniser
from tasks.speech.recogniser.network import greedy_decode


@pytest.fixture(scope="module")
def tones(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tones")
    write_tones(folder / "train", 120, seed=1)
    write_tones(folder / "valid", 20, seed=2)
    document = yaml.safe_load((Path(__file__).parents[3] / "params.yaml").read_text(encoding="utf-8"))
    document["speech"]["recogniser"] = {"kind": "trained", **TINY}
    document["tracking"]["live"] = False
    (folder / "params.yaml").write_text(yaml.safe_dump(document))
    return folder


def _arguments(tones: Path, output: Path, *more: str) -> list[str]:
    return [
        "train-recogniser",
        *("--params", str(tones / "params.yaml"), "--manifest", str(tones / "train" / "manifest.jsonl")),
        *("--output", str(output), "--set", f"resources.work_folder={output.parent / 'work'}", "--threads", "1", *more),
    ]


def _weights(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def trained(tones, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    valid = str(tones / "valid" / "manifest.jsonl")
    report = str(folder / "report.json")
    more = ["--valid", valid, "--report", report, *settings("training.epochs=9", "training.validate_every_steps=60")]
    assert cli.main(_arguments(tones, folder / "r", *more)) == 0
    return folder


def test_it_learns_a_language_of_four_tones(trained):
    measured = json.loads((trained / "report.json").read_text())["measured"]
    rates = [point["valid_wer"] for point in measured["curve"] if "valid_wer" in point]
    assert rates[-1] < 0.25 < rates[0]
    assert measured["utterances"] == 120
    assert measured["synthetic"] is True
    assert measured["steps"] == measured["curve"][-1]["step"]
    assert measured["recogniser_hash"] == load_recogniser(trained / "r").hash
    text = (trained / "report.json").read_text()
    assert not any(f'"{word}' in text or f" {word} " in text for word in ("la mi", "so do", "mi so"))


def test_encoded_speech_decodes_to_what_was_whistled(trained, tones):
    manifest, output = tones / "valid" / "manifest.jsonl", trained / "valid.encoded"
    options = ["--recogniser", str(trained / "r"), "--manifest", str(manifest), "--output", str(output)]
    assert cli.main(["encode-speech", *options, "--report", str(trained / "encode.json"), "--threads", "1"]) == 0
    recogniser, encoded = load_recogniser(trained / "r"), read_encoded(output)
    encoded.check_recogniser(recogniser.hash)
    found = greedy_decode(recogniser.model, recogniser.units.blank, [encoded.frames(i) for i in encoded.utterance_ids])
    spoken = {entry["utterance_id"]: entry["text"] for entry in map(json.loads, manifest.read_text().splitlines())}
    assert encoded.utterance_ids == list(spoken)
    right = [recogniser.units.decode(ids) == spoken[i] for i, ids in zip(encoded.utterance_ids, found, strict=True)]
    assert sum(right) > 10
    measured = json.loads((trained / "encode.json").read_text())["measured"]
    assert measured["utterances"] == 20
    assert measured["without_frames"] == 0
    assert output.stat().st_mode & 0o777 == 0o600


def test_the_same_seed_gives_the_same_bytes(tones, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = settings("training.epochs=0.5", f"training.seed={seed}")
        assert cli.main(_arguments(tones, tmp_path / name, *options)) == 0
    assert _weights(tmp_path / "a") == _weights(tmp_path / "b") != _weights(tmp_path / "c")


def test_it_goes_on_from_another_recognisers_weights(trained, tones, tmp_path, refusal):
    base = trained / "r"
    begin = settings(f"begin_with={base}", "training.epochs=0.1", "training.learning_rate=0.000000001")
    assert cli.main(_arguments(tones, tmp_path / "same", *begin)) == 0
    before, after = load_recogniser(base), load_recogniser(tmp_path / "same")
    assert after.units.models == before.units.models
    assert torch.equal(after.feature_statistics.mean, before.feature_statistics.mean)
    for name, value in before.model.state_dict().items():
        assert torch.allclose(after.model.state_dict()[name], value, atol=1e-3), name
    for setting, message in [
        ("units.size=11", "units.size is 11, and"),
        ("architecture.layers=2", "architecture.layers is 2 here and 1 there; give the same"),
    ]:
        assert message in refusal(*_arguments(tones, tmp_path / "r", *settings(f"begin_with={base}", setting)))


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_bytes(tones, tmp_path):
    assert cli.main(_arguments(tones, tmp_path / "whole", *settings("training.epochs=3"))) == 0
    options = settings("training.epochs=3", "resources.checkpoint_steps=1")
    arguments = _arguments(tones, tmp_path / "again" / "r", *options)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-m", "tasks.cli", *arguments], env=environment, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("again/work/*/last.ckpt")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert not (tmp_path / "again" / "r").exists()
    result = subprocess.run(
        [sys.executable, "-m", "tasks.cli", *arguments], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "goes on from the checkpoint after step" in result.stderr
    assert _weights(tmp_path / "again" / "r") == _weights(tmp_path / "whole")
    assert not list(tmp_path.glob("again/work/*"))


def test_what_a_user_can_get_wrong(tones, tmp_path, refusal):
    manifest = ["--manifest", tones / "train" / "manifest.jsonl"]
    for options, message in [
        ([], "give --manifest with recordings, or --input"),
        ([*manifest, "--input", "x.txt"], "and not both"),
        (["--manifest", "nowhere.jsonl"], "'nowhere.jsonl' does not exist"),
        ([*manifest, "--set", "training.minimum_words=9"], "none of the 120 utterances is of a length that"),
        (manifest, "units cannot be learned"),
    ]:
        assert message in refusal("train-recogniser", "--output", tmp_path / "r", "--threads", "1", *options)
