"""Whisper's n-best lists of a manifest, transcripts of recordings by it and by a recogniser, and bad calls."""

import json

import numpy as np
import pytest
import soundfile
import torch
from command_results import measured, refusal, report
from stage_commands import settings
from tiny_recogniser import spoken, write_noise
from tiny_whisper import save_folder
from transformers import BertConfig

from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.whisper.recogniser import has_digits, load_whisper, windows_of

RATE = 8000


@pytest.fixture(scope="module")
def whisper(tmp_path_factory):
    return save_folder(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audio")
    written = write_noise(folder, short=0.4, long=4.5, middle=1.5)
    soundfile.write(folder / "long.wav", spoken()[: int(4.5 * 16_000)], 16_000, subtype="FLOAT")
    return written


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """A call of 5.4 s with a quieter speaker on the second channel, and each side of it as a file."""
    folder, speech = tmp_path_factory.mktemp("audio"), spoken(RATE)
    sides = np.stack([speech, 0.3 * np.roll(speech, 2 * RATE)], axis=1)
    soundfile.write(folder / "call.ogg", sides, RATE)
    decoded = soundfile.read(folder / "call.ogg", dtype="float32")[0]
    for channel in (0, 1):
        soundfile.write(folder / f"side{channel}.wav", decoded[:, channel], RATE, subtype="FLOAT")
    return folder / "call.ogg"


def nbest(whisper, manifest, output, *options):
    return ["whisper-nbest", "--manifest", manifest, "--model", whisper, "--output", output, "--threads", "1", *options]


def test_lists_of_all_utterances(whisper, manifest, tmp_path, capsys):
    output = tmp_path / "lists.jsonl.gz"
    document = report(*nbest(whisper, manifest, output, *settings("nbest=5", "no_digits=true")))
    lists = read_nbest(output)
    assert [one.utterance_id for one in lists] == ["short", "long", "middle"]
    assert {one.reference for one in lists} == {"a dog"}
    assert output.stat().st_mode & 0o777 == 0o600
    for one in lists:
        assert 1 <= len(one.hypotheses) <= 5
        assert len({tuple(normalise(hypothesis.text)) for hypothesis in one.hypotheses}) == len(one.hypotheses)
        assert all(hypothesis.score < 0 and not has_digits(hypothesis.text) for hypothesis in one.hypotheses)
    found = document["measured"]
    assert (found["utterances"], found["windowed"]) == (3, 1)
    assert found["hypotheses"] == sum(len(one.hypotheses) for one in lists)
    assert (found["audio_seconds"], found["synthetic"]) == (6.4, True)
    assert any("1 recordings are longer than one window and were cut" in warning for warning in document["warnings"])
    assert "a dog" not in json.dumps(document) + capsys.readouterr().err


def test_what_users_of_nbest_lists_get_wrong(whisper, manifest, tmp_path):
    BertConfig().save_pretrained(tmp_path / "bert")
    load_whisper(whisper).model.save_pretrained(tmp_path / "bare")  # without a tokenizer
    for options, message in [
        (["--model", f"{tmp_path}/bert"], "is of the kind 'bert'; this command needs a Whisper model"),
        (["--model", f"{tmp_path}/bare"], "bare"),
        (["--set", "maximum_seconds=1"], "2 recordings cannot be used: utterance 'long': audio file"),
        (["--set", "nbest=21"], "nbest 21 is more than beam_width 20"),
        (["--set", "language=de"], "language 'de' is not allowed: this model knows English ('en') only"),
        (["--manifest", "nowhere.jsonl"], "manifest 'nowhere.jsonl' does not exist"),
    ]:
        assert message in refusal(*nbest(whisper, manifest, tmp_path / "x.jsonl", *options))
        assert not (tmp_path / "x.jsonl").exists()


@pytest.mark.parametrize("rate", [8_000, 16_000])
def test_windows_have_the_speech_of_long_recordings_without_long_pauses(rate):
    speech, pause = torch.from_numpy(spoken(rate)), torch.zeros(10 * rate)
    whole = torch.cat([pause, speech, pause, speech, speech, pause])
    threads = torch.get_num_threads()
    windows = windows_of(whole, 12 * rate, rate)
    assert torch.get_num_threads() == threads
    assert [len(part) / rate for part in windows] == pytest.approx([5.4, 10.9], abs=0.7)
    assert all(float(part.abs().max()) == float(speech.abs().max()) for part in windows)
    assert [len(part) for part in windows_of(speech, len(speech), rate)] == [len(speech)]
    assert windows_of(torch.zeros(2 * rate), rate, rate) == []
    # Speech without a pause is cut too, and nothing of it is lost.
    short = windows_of(speech, rate, rate)
    assert all(0 < len(part) <= rate for part in short)
    assert sum(map(len, short)) > 0.9 * len(speech)


def transcribe(tmp_path, *options):
    """The lines of the file of texts, and what was measured."""
    output = tmp_path / "texts.jsonl"
    found = measured("transcribe", *options, "--threads", "1", "--output", output)
    assert output.stat().st_mode & 0o777 == 0o600
    return [json.loads(line) for line in output.read_text().splitlines()], found


@pytest.mark.parametrize("kind", ["--model", "--recogniser"])
def test_each_channel_is_transcribed_as_the_file_with_it_alone(kind, whisper, recogniser_folder, call, tmp_path):
    by = [kind, whisper if kind == "--model" else recogniser_folder]
    apart, found = transcribe(tmp_path, "--audio", call, *by, "--set", "channels=separate")
    alone, _ = transcribe(tmp_path, "--audio", *(call.with_name(f"side{channel}.wav") for channel in (0, 1)), *by)
    assert [(line["audio"], line["channel"]) for line in apart] == [(str(call), 0), (str(call), 1)]
    assert [line["text"] for line in apart] == [line["text"] for line in alone]
    assert all(line["text"] for line in apart)
    assert apart[0]["text"] != apart[1]["text"]
    assert (found["recordings"], found["texts"]) == (1, 2)
