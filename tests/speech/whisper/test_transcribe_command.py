"""Transcripts of recordings by a Whisper model and by a recogniser with random weights, and bad calls."""

import json
import stat

import numpy as np
import pytest
import soundfile
from tiny_recogniser import random_recogniser
from tiny_whisper import save_folder

from tasks.cli import main
from tasks.speech.recogniser.folder import save_recogniser

RATE = 8000


@pytest.fixture(scope="module")
def whisper(tmp_path_factory):
    return save_folder(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recogniser") / "model"
    save_recogniser(folder, random_recogniser(emits=True))
    return str(folder)


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """A call of 35 s with a speaker on each channel, and each side of it as a file."""
    folder, random = tmp_path_factory.mktemp("audio"), np.random.default_rng(1)
    sides = random.normal(0, 0.1, (35 * RATE, 2)) * np.sin(np.arange(35 * RATE) / 900)[:, None]
    soundfile.write(folder / "call.ogg", sides, RATE)
    decoded = soundfile.read(folder / "call.ogg", dtype="float32")[0]
    for channel in (0, 1):
        soundfile.write(folder / f"side{channel}.wav", decoded[:, channel], RATE, subtype="FLOAT")
    return str(folder / "call.ogg")


def transcribe(tmp_path, *options):
    output, report = tmp_path / "texts.jsonl", tmp_path / "report.json"
    assert main(["transcribe", *options, "--threads", "1", "--output", str(output), "--report", str(report)]) == 0
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    return [json.loads(line) for line in output.read_text().splitlines()], json.loads(report.read_text())["measured"]


@pytest.mark.parametrize("kind", ["--model", "--recogniser"])
def test_each_channel_is_transcribed_as_the_file_with_it_alone(kind, whisper, recogniser, call, tmp_path):
    by = [kind, whisper if kind == "--model" else recogniser]
    apart, measured = transcribe(tmp_path, "--audio", call, *by, "--set", "channels=separate")
    sides = [call.replace("call.ogg", f"side{channel}.wav") for channel in (0, 1)]
    alone, _ = transcribe(tmp_path, "--audio", *sides, *by)
    assert [(line["audio"], line["channel"]) for line in apart] == [(call, 0), (call, 1)]
    assert [line["text"] for line in apart] == [line["text"] for line in alone]
    assert all(line["text"] for line in apart)
    assert apart[0]["text"] != apart[1]["text"]
    assert (measured["recordings"], measured["texts"], measured["mixed_down"]) == (1, 2, 0)
    mixed, measured = transcribe(tmp_path, "--audio", call, *by)
    assert [line["audio"] for line in mixed] == [call]
    assert (measured["mixed_down"], measured["words"]) == (1, len(mixed[0]["text"].split()))


def test_texts_are_shown_without_a_file_and_can_be_read_as_a_corpus(recogniser, call, tmp_path, capsys):
    assert main(["transcribe", "--audio", call, "--recogniser", recogniser, "--threads", "1"]) == 0
    shown, warned = capsys.readouterr()
    assert "learned from synthesised speech" in warned
    found, _ = transcribe(tmp_path, "--audio", call, "--recogniser", recogniser)
    assert shown == f"{call}: {found[0]['text']}\n"
    from palimpsest import read

    assert read(tmp_path / "texts.jsonl") == [found[0]["text"]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--audio", "gone.wav", "--model", "m"], "audio file 'gone.wav' does not exist"),
        (["--audio", "CALL"], "give --model or --recogniser"),
        (["--audio", "CALL", "--model", "m", "--recogniser", "r"], "give --model or --recogniser"),
        (["--audio", "CALL", "--recogniser", "no/folder"], "'no/folder'"),
        (["--audio", "CALL", "--model", "m", "--set", "whisper.maximum_seconds=5"], "at most 5 are allowed"),
    ],
)
def test_a_bad_call_ends_with_one_line(options, says, call, capsys):
    assert main(["transcribe", *(call if option == "CALL" else option for option in options)]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert error.strip().count("\n") == 0
