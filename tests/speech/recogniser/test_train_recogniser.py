"""A recogniser learns a language that is whistled: each of four words is a tone, so that it learns them in seconds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml
from command_results import measured, refusal, report, write_records
from stage_commands import settings

from tasks.speech.audio.manifest import Utterance, write_manifest
from tasks.speech.recogniser.recogniser import load_recogniser

TONES = {"la": 500.0, "mi": 1000.0, "so": 2000.0, "do": 4000.0}
RATE = 16_000
TINY = {
    "features": {"bands": 20},
    "augmentation": {"frequency_masks": 0, "time_masks": 0},
    "units": {"size": 12},
    "architecture": {
        "encoding": 32, "reduction_input": 8, "layers": 1, "heads": 2, "feed_forward": 64, "left_context_frames": 4,
        "predictor_width": 16,
    },
    "training": {"epochs": 3.0, "batch_seconds": 4.0, "learning_rate": 0.01, "precision": "float32"},
}  # fmt: skip
"""Settings of a recogniser of 30,000 weights."""


def write_tones(folder, utterances, seed):
    """A manifest of whistled sentences: tones of 0.2 s with 0.1 s of quiet noise behind each."""
    generator = np.random.default_rng(seed)
    folder.mkdir()
    entries = []
    times = np.arange(int(0.2 * RATE)) / RATE
    for number in range(utterances):
        words = [str(word) for word in generator.choice(list(TONES), generator.integers(1, 5))]
        parts = [np.zeros(800)]
        for word in words:
            parts += [0.3 * np.sin(2 * np.pi * TONES[word] * times), np.zeros(int(0.1 * RATE))]
        sound = np.concatenate(parts)
        sound += 0.001 * np.random.default_rng(len(words)).standard_normal(len(sound))
        soundfile.write(folder / f"{number}.wav", sound.astype(np.float32), RATE)
        entries.append(Utterance(f"tone-{number}", folder / f"{number}.wav", " ".join(words), synthetic=True))
    write_manifest(folder / "manifest.jsonl", entries)


@pytest.fixture(scope="module")
def tones(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tones")
    write_tones(folder / "train", 120, seed=1)
    write_tones(folder / "valid", 20, seed=2)
    document = yaml.safe_load((Path(__file__).parents[3] / "params.yaml").read_text(encoding="utf-8"))
    document["speech"]["recogniser"] = {"kind": "trained", **TINY}
    document["tracking"]["live"] = False
    (folder / "params.yaml").write_text(yaml.safe_dump(document))
    return folder


def training(tones, output, *values, speech=None):
    """The command that trains a recogniser with these settings."""
    speech = speech or ["--manifest", tones / "train" / "manifest.jsonl"]
    files = ["--params", tones / "params.yaml", *speech, "--output", output]
    values = [f"resources.work_folder={output.parent / 'work'}", *values]
    return ["train-recogniser", *map(str, files), "--threads", "1", *settings(*values)]


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def trained(tones, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    command = training(tones, folder / "r", "training.epochs=9", "training.validate_every_steps=60")
    found = measured(*command, "--valid", tones / "valid" / "manifest.jsonl")
    return folder / "r", found


def test_it_learns_a_language_of_four_tones(trained):
    folder, found = trained
    rates = [point["valid_wer"] for point in found["curve"] if "valid_wer" in point]
    assert rates[-1] < 0.25 < rates[0]
    assert (found["utterances"], found["synthetic"]) == (120, True)
    assert found["steps"] == found["curve"][-1]["step"]
    assert found["recogniser_hash"] == load_recogniser(folder).hash
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert not any(words in json.dumps(found) for words in ("la mi", "so do", "mi so"))


def test_encoded_speech_decodes_to_what_was_whistled(trained, tones, tmp_path):
    models, encoded = ["--recogniser", trained[0], "--threads", "1"], tmp_path / "encoded"
    manifest = tones / "valid" / "manifest.jsonl"
    found = measured("encode-speech", *models, "--manifest", manifest, "--output", encoded)
    assert (found["utterances"], found["without_frames"]) == (20, 0)
    assert encoded.stat().st_mode & 0o777 == 0o600
    decoded = measured("fuse", *models, "--test", encoded, "--test-manifest", manifest, "--output", tmp_path / "lists")
    assert (decoded["utterances"], decoded["wer"] < 0.25) == (20, True)


def test_recordings_with_a_lower_rate_are_warned_of(trained, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.full(4000, 0.1), 4000)
    manifest = write_records(tmp_path / "m.jsonl", [{"utterance_id": "a", "audio": "a.wav", "text": "la"}])
    files = ["--recogniser", trained[0], "--manifest", manifest, "--output", tmp_path / "encoded"]
    assert any("1 recordings have fewer than" in warning for warning in report("encode-speech", *files)["warnings"])


def test_sentences_are_spoken_and_the_same_seed_gives_the_same_bytes(tones, tmp_path):
    pytest.importorskip("espeakng_loader")
    lines = ["La mi so, do.", "It is 7 o'clock.", "Mi mi la!", "...", "So do la.", "La do do so mi."]
    text = ["--input", write_records(tmp_path / "text.txt", lines)]
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        values = f"training.seed={seed}", "synthesis.sentences=3"
        found = measured(*training(tones, tmp_path / name, *values, speech=text))
        assert (found["utterances"], found["synthetic"]) == (3, True)
        assert found["left_out"] == {"digits": 1, "no_words": 1, "not_drawn": 1}
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


def test_it_goes_on_from_another_recognisers_weights(trained, tones, tmp_path):
    base, _ = trained
    begin = [f"begin_with={base}", "training.epochs=0.1", "training.learning_rate=0.000000001"]
    measured(*training(tones, tmp_path / "same", *begin))
    before, after = load_recogniser(base), load_recogniser(tmp_path / "same")
    assert after.units.models == before.units.models
    assert torch.equal(after.feature_statistics.mean, before.feature_statistics.mean)
    for name, value in before.model.state_dict().items():
        assert torch.allclose(after.model.state_dict()[name], value, atol=1e-3), name
    other = training(tones, tmp_path / "r", f"begin_with={base}", "architecture.layers=2")
    assert "architecture.layers is 2 here and 1 there; give the same" in refusal(*other)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_bytes(tones, tmp_path):
    measured(*training(tones, tmp_path / "whole"))
    command = training(tones, tmp_path / "again" / "r", "resources.checkpoint_steps=1")
    words = [sys.executable, "-m", "tasks.cli", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("again/work/*/last.ckpt")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert not (tmp_path / "again" / "r").exists()
    result = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "goes on from the checkpoint after step" in result.stderr
    assert weights(tmp_path / "again" / "r") == weights(tmp_path / "whole")
    assert not list(tmp_path.glob("again/work/*"))


def test_what_a_user_can_get_wrong(tones, tmp_path):
    given = ["--manifest", tones / "train" / "manifest.jsonl"]
    digits = write_records(tmp_path / "digits.txt", ["98765 43210"])
    for options, message in (
        ([*given, "--input", "x.txt"], "and not both"),
        ([*given, "--set", "training.minimum_words=9"], "none of the 120 utterances is of a length that"),
        (given, "units cannot be learned"),
        (["--input", digits], "none of its 1 lines can be spoken"),
    ):
        error = refusal("train-recogniser", "--output", tmp_path / "r", "--threads", "1", *options)
        assert message in error
        assert "98765" not in error
