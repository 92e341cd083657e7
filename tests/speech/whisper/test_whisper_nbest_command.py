"""The command from a manifest to lists, and what users get wrong."""

import json
import stat

import pytest
import torch
from stage_commands import settings
from tiny_whisper import save_folder, write_noise
from transformers import BertConfig

from tasks.cli import main
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.whisper.recogniser import has_digits, load_whisper
from tasks.speech.whisper.transcription import windows_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return write_noise(tmp_path_factory.mktemp("audio"), {"short": 0.4, "long": 4.5, "middle": 1.5})


def decode(folder, manifest, output, *options):
    files = ["--manifest", manifest, "--model", folder, "--output", str(output)]
    return ["whisper-nbest", *files, "--threads", "1", *options]


def test_lists_of_all_utterances(folder, manifest, tmp_path, capsys):
    output, report = tmp_path / "lists.jsonl.gz", tmp_path / "report.json"
    options = ["--report", str(report), *settings("nbest=5", "no_digits=true")]
    assert main(decode(folder, manifest, output, *options)) == 0
    lists = read_nbest(output)
    assert [one.utterance_id for one in lists] == ["short", "long", "middle"]
    assert {one.reference for one in lists} == {"a word or two"}
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    for one in lists:
        assert 1 <= len(one.hypotheses) <= 5
        assert len({tuple(normalise(hypothesis.text)) for hypothesis in one.hypotheses}) == len(one.hypotheses)
        assert all(hypothesis.score < 0 and not has_digits(hypothesis.text) for hypothesis in one.hypotheses)
    document = json.loads(report.read_text(encoding="utf-8"))
    measured = document["measured"]
    assert (measured["utterances"], measured["windowed"], measured["best_with_digits"]) == (3, 1, 0)
    assert measured["hypotheses"] == sum(len(one.hypotheses) for one in lists)
    assert measured["audio_seconds"] == 6.4
    assert measured["synthetic"] is True
    assert any("longer than one window and were cut: long" in warning for warning in document["warnings"])
    assert "a word or two" not in report.read_text(encoding="utf-8") + capsys.readouterr().err


def test_what_users_get_wrong(folder, manifest, tmp_path, refusal):
    BertConfig().save_pretrained(tmp_path / "bert")
    load_whisper(folder).model.save_pretrained(tmp_path / "bare")  # without a tokenizer
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
        assert message in refusal(*decode(folder, manifest, tmp_path / "x.jsonl", *options))
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
