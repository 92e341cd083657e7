import json

import numpy as np
import pytest
import soundfile

from tasks.cli import main
from tasks.speech.audio.manifest import read_manifest


def speech_corpus(*arguments):
    return main(["speech-corpus", *map(str, arguments)])


@pytest.fixture
def source(tmp_path):
    entries = []
    for name, words, channels, seconds, rate in (
        ("a", "Tom said so.", 1, 2, 8000),
        ("b", "Two of us.", 2, 1, 16000),
        ("c", "...", 1, 1, 16000),
        ("d", "too long", 1, 9, 16000),
        ("e", "not audio", 0, 0, 0),
    ):
        path = tmp_path / "mine" / f"{name}.wav"
        path.parent.mkdir(exist_ok=True)
        if channels:
            soundfile.write(path, np.zeros((seconds * rate, channels), dtype=np.int16), rate)
        else:
            path.write_bytes(b"nothing")
        entries.append({"utterance_id": name, "audio": path.name, "text": words, "speaker": "me"})
    manifest = tmp_path / "mine" / "m.jsonl"
    manifest.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return manifest


def test_a_manifest_of_ones_own_is_checked_and_what_is_left_out_is_counted_and_named(source, tmp_path, capsys):
    report = tmp_path / "report.json"
    options = ["--set", "maximum_seconds=5", "--report", report]
    assert speech_corpus("--set", f"source={source}", "--output", tmp_path / "out", *options) == 0
    utterances = read_manifest(tmp_path / "out" / "manifest.jsonl")
    assert [(each.utterance_id, each.audio.name) for each in utterances] == [("a", "a.wav"), ("b", "b.wav")]
    document = json.loads(report.read_text())
    assert document["measured"] == {
        "synthetic": False,
        "synthetic_utterances": 0,
        "utterances": 2,
        "words": 6,
        "audio_seconds": 3.0,
        "speakers": 1,
        "sample_rates": {"8000": 1, "16000": 1},
        "several_channels": 1,
        "left_out": {"no_words": 1, "too_long": 1, "unreadable": 1},
    }
    assert document["warnings"] == ["left out: 1 no_words (c); 1 too_long (d); 1 unreadable (e)"]
    assert "Tom" not in report.read_text() + capsys.readouterr().err
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "out" / "manifest.jsonl").stat().st_mode & 0o777 == 0o600
