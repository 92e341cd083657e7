"""Whisper's n-best lists of a manifest, transcripts of recordings by it and by a recogniser, and bad calls."""

import json

import numpy as np
import pytest
import soundfile
import torch
from command_results import measured, refusal, report
from stage_commands import settings
from tiny_recogniser import write_noise
from tiny_whisper import save_folder
from transformers import BertConfig

from palimpsest import read
from tasks.cli import main
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.whisper.recogniser import has_digits, load_whisper
from tasks.speech.whisper.transcription import windows_of

RATE = 8000


@pytest.fixture(scope="module")
def whisper(tmp_path_factory):
    return save_folder(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return write_noise(tmp_path_factory.mktemp("audio"), short=0.4, long=4.5, middle=1.5)


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """A call of 3 s with a quieter speaker on the second channel, and each side of it as a file."""
    folder, random = tmp_path_factory.mktemp("audio"), np.random.default_rng(1)
    sides = random.normal(0, [0.1, 0.005], (3 * RATE, 2)) * np.sin(np.arange(3 * RATE) / 900)[:, None]
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
    assert (found["utterances"], found["windowed"], found["best_with_digits"]) == (3, 1, 0)
    assert found["hypotheses"] == sum(len(one.hypotheses) for one in lists)
    assert (found["audio_seconds"], found["synthetic"]) == (6.4, True)
    assert any("longer than one window and were cut: long" in warning for warning in document["warnings"])
    assert "a dog" not in json.dumps(document) + capsys.readouterr().err


def test_what_users_of_nbest_lists_get_wrong(whisper, manifest, tmp_path):
    BertConfig().save_pretrained(tmp_path / "bert")
    load_whisper(whisper).model.save_pretrained(tmp_path / "bare")  # without a tokenizer
    for options, message in [
        (["--model", f"{tmp_path}/bert"], "is of the kind 'bert'; this command needs a Whisper model"),
        (["--model", f"{tmp_path}/bare"], "bare"),
        (["--set", "maximum_seconds=1"], "2 recordings cannot be used: utterance 'long': audio file"),
        (["--set", "nbest=21"], "nbest 21 is more than beam_width 20"),
        (["--set", "beam_width=0"], "beam_width"),
        (["--set", "language=de"], "language 'de' is not allowed: this model knows English ('en') only"),
        (["--model", "./nowhere"], "model folder './nowhere' does not exist"),
        (["--model", "package:no_such_package/tiny"], "the package 'no_such_package' is not installed"),
        (["--manifest", "nowhere.jsonl"], "manifest 'nowhere.jsonl' does not exist"),
    ]:
        assert message in refusal(*nbest(whisper, manifest, tmp_path / "x.jsonl", *options))
        assert not (tmp_path / "x.jsonl").exists()


def test_windows_are_cut_where_it_is_quiet():
    samples = torch.rand(50_000) - 0.5
    samples[25_000:31_000] = 0.0
    parts = windows_of(samples, 32_000, 16_000)
    assert torch.equal(torch.cat(parts), samples)
    assert len(parts) == 2
    assert 25_000 < len(parts[0]) < 31_000
    assert [len(part) for part in windows_of(samples[:32_000], 32_000, 16_000)] == [32_000]
    assert all(0 < len(part) <= 4_000 for part in windows_of(samples, 4_000, 16_000))


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
    assert (found["recordings"], found["texts"], found["mixed_down"]) == (1, 2, 0)


def test_texts_are_shown_without_a_file_and_can_be_read_as_a_corpus(recogniser_folder, call, tmp_path, capsys):
    given = ["--audio", str(call), "--recogniser", str(recogniser_folder)]
    assert main(["transcribe", *given, "--threads", "1"]) == 0
    shown, warned = capsys.readouterr()
    assert "learned from synthesised speech" in warned
    (line,), found = transcribe(tmp_path, *given)
    assert (found["mixed_down"], found["words"]) == (1, len(line["text"].split()))
    assert shown == f"{call}: {line['text']}\n"
    assert read(tmp_path / "texts.jsonl") == [line["text"]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--audio", "gone.wav", "--model", "m"], "audio file 'gone.wav' does not exist"),
        (["--audio", "CALL"], "give --model or --recogniser"),
        (["--audio", "CALL", "--model", "m", "--recogniser", "r"], "give --model or --recogniser"),
        (["--audio", "CALL", "--recogniser", "no/folder"], "'no/folder'"),
        (["--audio", "CALL", "--model", "m", "--set", "whisper.maximum_seconds=2"], "at most 2 are allowed"),
    ],
)
def test_a_bad_call_of_transcribe_ends_with_one_line(options, says, call):
    assert says in refusal("transcribe", *(call if option == "CALL" else option for option in options))
