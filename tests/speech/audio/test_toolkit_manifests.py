"""Manifests of NeMo and Lhotse: whole recordings, parts, channels, and what is wrong in them."""

import json

import numpy as np
import pytest
import soundfile
from stage_commands import settings

from tasks.cli import main
from tasks.speech.audio.manifest import read_manifest

RATE = 8000


@pytest.fixture
def talk(tmp_path):
    """Two channels of three seconds: the first rises, the second is its negative."""
    path = tmp_path / "audio" / "talk.wav"
    path.parent.mkdir()
    first = np.arange(3 * RATE) / (10 * RATE)
    soundfile.write(path, np.stack([first, -first], 1), RATE, subtype="PCM_16")
    soundfile.write(path.with_name("mono.wav"), first, RATE, subtype="PCM_16")
    return path


def read(tmp_path, *records):
    source, output, report = (tmp_path / name for name in ("source.jsonl", "out", "report.json"))
    source.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    options = settings("kind=manifest", f"source={source}")
    status = main(["speech-corpus", *options, "--output", str(output), "--report", str(report)])
    if status:
        return status
    return read_manifest(output / "manifest.jsonl"), json.loads(report.read_text())["measured"]["left_out"]


def cut(recording, *said, **others):
    source = {"type": "file", "channels": [0], "source": str(recording)}
    return {
        "id": "c", "start": 0.0, "duration": 3.0, "channel": 0, "type": "MonoCut", "supervisions": list(said),
        "recording": {"id": "r", "sources": [source], "sampling_rate": RATE, "duration": 3.0}, **others,
    }  # fmt: skip


def test_a_manifest_of_nemo_has_whole_recordings_and_parts(talk, tmp_path):
    found, left_out = read(
        tmp_path,
        {"audio_filepath": str(talk.with_name("mono.wav")), "text": "all of it", "duration": 3.0, "speaker": 7},
        {"audio_filepath": "audio/mono.wav", "text": "one second", "duration": 1.0, "offset": 1.0},
        {"audio_filepath": "/elsewhere/audio/talk.wav", "text": "found by its end", "duration": 3.0},
        {"audio_filepath": "gone.wav", "text": "not there", "duration": 3.0},
    )
    assert [one.text for one in found] == ["all of it", "one second", "found by its end"]
    assert (found[0].speaker, found[1].utterance_id, left_out) == ("7", "audio/mono-1.0", {"no_recording": 1})
    assert found[0].audio == talk.with_name("mono.wav")
    samples, _ = soundfile.read(found[1].audio)
    assert (len(samples), samples[0]) == (RATE, pytest.approx(0.1, abs=1e-3))


def test_cuts_of_lhotse_have_supervisions_and_channels(talk, tmp_path):
    stereo = cut(
        talk,
        {"start": 0.0, "duration": 1.0, "text": "first side", "channel": 0, "speaker": "anna"},
        {"start": 1.0, "duration": 1.0, "text": "second side", "channel": 1},
        {"start": 1.0, "duration": 1.0, "text": "third side", "channel": 2},
        start=0.5,
    )
    stereo["recording"]["sources"][0]["channels"] = [0, 1]
    whole = cut(talk.with_name("mono.wav"), {"start": 0, "duration": 3.0, "text": "all of it"}, id="whole")
    found, left_out = read(tmp_path, stereo, whole)
    assert [(one.utterance_id, one.text, one.speaker) for one in found] == [
        ("c-0", "first side", "anna"), ("c-1", "second side", None), ("whole", "all of it", None),
    ]  # fmt: skip
    first, second = (soundfile.read(one.audio)[0] for one in found[:2])
    assert (first.shape, second.shape) == ((RATE,), (RATE,))
    assert (first[0], second[0]) == (pytest.approx(0.05, abs=1e-3), pytest.approx(-0.15, abs=1e-3))
    assert (found[2].audio, left_out) == (talk.with_name("mono.wav"), {"beyond_recording": 1})


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([{"audio_filepath": "a.wav", "duration": 1}], "line 1: has no text"),
        ([{"audio_filepath": 7, "text": "Quux"}], "line 1: has no path of an audio file"),
        ([{"audio_filepath": "a.wav", "text": "Quux", "offset": 1, "duration": "x"}], "no start and duration"),
        ([{"audio_filepath": "a.wav", "text": "Quux"}] * 2, "line 2: utterance_id 'a' is in line 1 too"),
        ([cut("a.wav", {"start": "x", "text": "Quux"})], "line 1: has no start and duration in seconds"),
        ([cut("a.wav", "Quux")], "line 1: has no recording with supervisions"),
        ([cut("a.wav"), {"id": "mixed", "tracks": []}], "line 2: has no recording with supervisions"),
    ],
)
def test_lines_of_another_form_are_listed_without_their_text(records, says, tmp_path, capsys):
    assert read(tmp_path, *records) == 1
    error = capsys.readouterr().err
    assert says in error
    assert ("Quux" in error, error.strip().count("\n")) == (False, 0)
