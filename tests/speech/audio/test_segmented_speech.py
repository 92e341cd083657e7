"""Utterances cut out of recordings (Kaldi's data folders), and recordings inside Parquet files."""

import json

import numpy as np
import pyarrow
import pytest
import soundfile
from pyarrow import parquet
from stage_commands import settings

from tasks.cli import main
from tasks.errors import SpeechError
from tasks.speech.audio.manifest import read_manifest
from tasks.speech.audio.segmented_speech import read_kaldi, read_parquet_speech
from tasks.speech.audio.settings import KaldiSpeech, ParquetSpeech

RATE = 8000


def ramp(path, seconds=3):
    """Samples that say where in the recording they are: second 1 has the value 0.1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.arange(seconds * RATE) / (10 * RATE), RATE, subtype="PCM_16")


def kaldi(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / name.replace("_", ".")).write_text("".join(f"{line}\n" for line in lines))
    return KaldiSpeech(kind="kaldi", source=str(folder))


def cut(tmp_path, *options):
    output, report = tmp_path / "out", tmp_path / "report.json"
    assert main(["speech-corpus", *options, "--output", str(output), "--report", str(report)]) == 0
    return read_manifest(output / "manifest.jsonl"), json.loads(report.read_text())["measured"]


def test_segments_of_a_kaldi_folder_are_cut_out(tmp_path):
    ramp(tmp_path / "data" / "audio" / "talk.flac")
    kaldi(
        tmp_path / "data",
        wav_scp=["talk flac -c -d -s /elsewhere/audio/talk.flac |", "gone audio/gone.wav"],
        text=["a-1 hello 世界", "a-2 [noise] ...", "a-3 way behind", "b-1 not there"],
        segments=["a-1 talk 1.0 1.5", "a-2 talk 0 1", "a-3 talk 2.5 3.5", "b-1 gone 0 1", "c-1 talk 0 1"],
        utt2spk=["a-1 anna"],
    )
    utterances, measured = cut(tmp_path, *settings("kind=kaldi", f"source={tmp_path / 'data'}"))
    assert [(each.utterance_id, each.text, each.speaker) for each in utterances][:1] == [("a-1", "hello 世界", "anna")]
    samples, rate = soundfile.read(utterances[0].audio)
    assert (len(samples), rate) == (RATE // 2, RATE)
    assert samples[[0, -1]] == pytest.approx([0.1, 0.15], abs=1e-3)
    assert measured["left_out"] == {"beyond_recording": 1, "no_recording": 1, "no_transcript": 1}
    assert utterances[0].audio.stat().st_mode & 0o777 == 0o600


def test_a_kaldi_folder_without_segments_names_whole_recordings_and_one_of_another_form_is_refused(tmp_path):
    ramp(tmp_path / "whole" / "u1.wav")
    found = read_kaldi(kaldi(tmp_path / "whole", wav_scp=["u1 u1.wav"], text=["u1 yes"]))
    assert ([each.audio.name for each in found.utterances], found.spans) == (["u1.wav"], {})
    for files, message in [
        ({}, "has no 'wav.scp'"),
        ({"wav_scp": ["u1"]}, "line 1 is not 'RECORDING FILE'"),
        ({"wav_scp": ["u1 sox u1.wav - remix 1 |"]}, "has a recording that 'sox' makes"),
        ({"wav_scp": ["r u.wav"], "segments": ["u1 r 0"]}, "'u1' needs 'UTTERANCE RECORDING BEGIN"),
    ]:
        with pytest.raises(SpeechError, match=message):
            read_kaldi(kaldi(tmp_path / "data", text=["u1 yes"], **files))


def test_recordings_inside_parquet_files_are_written_out(tmp_path):
    ramp(tmp_path / "ramp.wav")
    audio = {"bytes": (tmp_path / "ramp.wav").read_bytes(), "path": "ses1_spk3_L1_0.0_2.0.wav"}
    row = {"audio": audio, "transcription": "我 know", "original_speaker_id": 3}
    rows = [row | {"id": "a"}, row | {"id": "b"}, row | {"id": "b"}, row | {"id": "c", "audio": None}]
    source = tmp_path / "test-00000-of-00001.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    utterances, measured = cut(tmp_path, *settings("kind=parquet", f"source={source}"))
    assert [(each.utterance_id, each.text, each.speaker) for each in utterances] == [
        ("a", "我 know", "3"),
        ("b", "我 know", "3"),
    ]
    assert {each.audio.read_bytes() for each in utterances} == {audio["bytes"]}
    assert measured["left_out"] == {"duplicate": 1, "no_recording": 1}
    with pytest.raises(SpeechError, match="has no column 'sentence'; it has audio, transcription, original_"):
        read_parquet_speech(ParquetSpeech(kind="parquet", source=str(source), text="sentence"), tmp_path / "new")
