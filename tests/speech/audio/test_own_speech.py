"""Recordings of one's own by 'palimpsest speech-corpus': manifests of ours, NeMo's and Lhotse's, and Kaldi."""

import json

import numpy as np
import pytest
import soundfile
from command_results import report, write_records
from stage_commands import settings

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance, read_manifest

RATE = 8000


@pytest.fixture
def talk(tmp_path):
    """Three seconds whose samples say where they are: second 1 has the value 0.1."""
    path = tmp_path / "audio" / "talk.wav"
    path.parent.mkdir()
    soundfile.write(path, np.arange(3 * RATE) / (10 * RATE), RATE, subtype="PCM_16")
    return path


def corpus(tmp_path, *values):
    """What a new corpus says: its utterances, and its report."""
    document = report("speech-corpus", *settings(*values), "--output", tmp_path / "out")
    return read_manifest(tmp_path / "out" / "manifest.jsonl"), document


def of_manifest(tmp_path, *records):
    source = write_records(tmp_path / "source.jsonl", records)
    found, document = corpus(tmp_path, f"source={source}")
    return found, document["measured"]["left_out"]


def cut(recording, *said, channels=(0,), **others):
    source = {"type": "file", "channels": list(channels), "source": str(recording)}
    return {
        "id": "c", "start": 0.0, "duration": 3.0, "channel": 0, "type": "MonoCut", "supervisions": list(said),
        "recording": {"id": "r", "sources": [source], "sampling_rate": RATE, "duration": 3.0}, **others,
    }  # fmt: skip


def test_cuts_of_lhotse_have_supervisions_and_channels(talk, tmp_path):
    samples, _ = soundfile.read(talk)
    soundfile.write(tmp_path / "stereo.wav", np.stack([samples, -samples], 1), RATE, subtype="PCM_16")
    stereo = cut(
        tmp_path / "stereo.wav",
        {"start": 0.0, "duration": 1.0, "text": "first side", "channel": 0, "speaker": "anna"},
        {"start": 1.0, "duration": 1.0, "text": "second side", "channel": 1},
        {"start": 1.0, "duration": 1.0, "text": "third side", "channel": 2},
        channels=[0, 1], start=0.5,
    )  # fmt: skip
    whole = cut("/elsewhere/audio/talk.wav", {"start": 0, "duration": 3.0, "text": "all of it"}, id="whole")
    beginning = cut(talk, {"start": 0, "duration": 1.0, "text": "its beginning"}, id="beginning")
    of_two_files = cut("gone.wav", {"start": 0, "duration": 3.0, "text": "of two files"}, channel=1, id="two")
    of_two_files["recording"]["sources"] += cut(talk, channels=[1])["recording"]["sources"]
    found, left_out = of_manifest(tmp_path, stereo, whole, beginning, of_two_files)
    assert [(one.utterance_id, one.text, one.speaker) for one in found] == [
        ("c-0", "first side", "anna"), ("c-1", "second side", None), ("whole", "all of it", None),
        ("beginning", "its beginning", None), ("two", "of two files", None),
    ]  # fmt: skip
    first, second, _, part, _ = (soundfile.read(one.audio)[0] for one in found)
    assert (first.shape, second.shape, part.shape) == ((RATE,), (RATE,), (RATE,))
    assert (first[0], second[0]) == (pytest.approx(0.05, abs=1e-3), pytest.approx(-0.15, abs=1e-3))
    assert (found[2].audio, found[4].audio, left_out) == (talk, talk, {"beyond_recording": 1})


def test_all_problems_are_listed_with_their_lines_and_without_the_words(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"x")
    entries = [
        {"utterance_id": name, "audio": audio, "text": "secret words"}
        for name, audio in [
            ("one", "a.wav"), ("one", "a.wav"), ("four", "gone.wav"),
        ]
    ]  # fmt: skip
    entries += [{"audio": "a.wav", "txt": "secret words"}, "secret words", '["secret words"]']
    entries += [{"utterance_id": "a\tb", "audio": "", "text": ["secret words"], "synthetic": "false"}]
    with pytest.raises(SpeechError) as caught:
        read_manifest(write_records(tmp_path / "m.jsonl", entries))
    message = str(caught.value)
    for said in (
        "10 problems",
        "line 2: utterance_id 'one' is in line 1 too",
        "line 3: audio file 'gone.wav' does not exist",
        "line 4: has no 'utterance_id'",
        "line 4: has no 'text'",
        "line 5: is not JSON",
        "line 6: is no JSON object but list",
        "line 7: has no 'utterance_id' that is text of one line without tabs",
        "line 7: has no 'text' that is text",
        "line 7: 'synthetic' is not true or false",
    ):
        assert said in message
    assert "secret" not in message
    assert "\n" not in message


def test_a_manifest_of_ones_own_is_checked_and_what_is_left_out_is_counted_and_named(tmp_path, monkeypatch, capsys):
    entries = []
    for name, words, channels, seconds, rate in (
        ("a", "Tom said so.", 1, 2, 8000),
        ("b", "Two of us.", 2, 1, 16000),
        ("c", "...", 1, 1, 16000),
        ("d", "too long", 1, 9, 16000),
        ("e", "not audio", 1, 1, 8000),
    ):
        soundfile.write(tmp_path / f"{name}.wav", np.zeros((seconds * rate, channels), dtype=np.int16), rate)
        entries.append({"utterance_id": name, "audio": f"../{name}.wav", "text": words, "speaker": 7})
    (tmp_path / "e.wav").write_bytes(b"nothing")
    (tmp_path / "lists").mkdir()
    entries[1] |= {"synthetic": True, "speaker": None, "seconds": 1.0}
    source = write_records(tmp_path / "lists" / "m.jsonl", entries)
    monkeypatch.chdir("/")
    utterances, document = corpus(tmp_path, f"source={source}", "maximum_seconds=5")
    assert utterances == [
        Utterance("a", tmp_path / "a.wav", "Tom said so.", "7", False),
        Utterance("b", tmp_path / "b.wav", "Two of us.", None, True),
    ]
    assert document["measured"] == {
        "synthetic": True,
        "utterances": 2,
        "words": 6,
        "audio_seconds": 3.0,
        "left_out": {"no_words": 1, "too_long": 1, "unreadable": 1},
    }
    assert document["warnings"] == ["left out: 1 no_words (c); 1 too_long (d); 1 unreadable (e)"]
    assert "Tom" not in json.dumps(document) + capsys.readouterr().err
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "out" / "manifest.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_manifest_of_nemo_has_whole_recordings_and_parts(talk, tmp_path):
    found, left_out = of_manifest(
        tmp_path,
        {"audio_filepath": str(talk), "text": "all of it", "duration": 3.0, "speaker": 7},
        {"audio_filepath": "audio/talk.wav", "text": "one second", "duration": 1.0, "offset": 1.0},
        {"audio_filepath": "/elsewhere/audio/talk.wav", "text": "found by its end", "duration": 3.0},
        {"audio_filepath": "gone.wav", "text": "not there", "duration": 3.0},
    )
    assert [one.text for one in found] == ["all of it", "one second", "found by its end"]
    assert (found[0].speaker, found[1].utterance_id, left_out) == ("7", "audio/talk-1.0", {"no_recording": 1})
    assert found[0].audio == talk
    samples, _ = soundfile.read(found[1].audio)
    assert (len(samples), samples[0]) == (RATE, pytest.approx(0.1, abs=1e-3))


def kaldi(tmp_path, **files):
    folder = tmp_path / "kaldi"
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        write_records(folder / name.replace("_", "."), lines)
    return settings("kind=kaldi", f"source={folder}")[1::2]


def test_segments_of_a_kaldi_folder_are_cut_out(talk, tmp_path):
    (tmp_path / "kaldi" / "audio").mkdir(parents=True)
    talk.rename(tmp_path / "kaldi" / "audio" / "talk.flac")
    values = kaldi(
        tmp_path,
        wav_scp=["talk flac -c -d -s /elsewhere/audio/talk.flac |", "gone audio/gone.wav"],
        text=["a-1 hello 世界", "a-2 [noise] ...", "a-3 way behind", "b-1 not there"],
        segments=["a-1 talk 1.0 1.5", "a-2 talk 0 1", "a-3 talk 2.5 3.5", "b-1 gone 0 1", "c-1 talk 0 1"],
        utt2spk=["a-1 anna"],
    )
    utterances, document = corpus(tmp_path, *values)
    assert [(each.utterance_id, each.text, each.speaker) for each in utterances][:1] == [("a-1", "hello 世界", "anna")]
    samples, rate = soundfile.read(utterances[0].audio)
    assert (len(samples), rate) == (RATE // 2, RATE)
    assert samples[[0, -1]] == pytest.approx([0.1, 0.15], abs=1e-3)
    assert document["measured"]["left_out"] == {"beyond_recording": 1, "no_recording": 1, "no_transcript": 1}
    assert utterances[0].audio.stat().st_mode & 0o777 == 0o600


def test_a_kaldi_folder_without_segments_names_whole_recordings(talk, tmp_path):
    (utterance,), _ = corpus(tmp_path, *kaldi(tmp_path, wav_scp=[f"u1 {talk}"], text=["u1 yes"]))
    assert (utterance.audio, utterance.text) == (talk, "yes")
