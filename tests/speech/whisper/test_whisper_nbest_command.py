"""The command from a manifest to lists, and what users get wrong."""

import json
import stat

import pytest
import torch
from stage_commands import settings
from tiny_whisper import ENGLISH, GERMAN, NO_TIMESTAMPS, START, TRANSCRIBE, save_folder, write_noise
from transformers import BertConfig

from tasks.cli import main
from tasks.errors import ParameterError
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import ScoredHypothesis, read_nbest
from tasks.speech.whisper.recogniser import has_digits, load_whisper
from tasks.speech.whisper.transcription import join_windows, merge_spellings, windows_of


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


def test_text_of_pieces_and_pieces_with_digits(folder):
    recogniser = load_whisper(folder)
    assert recogniser.text_of("Zwölf Bücher, naïve – 3 €".encode()) == "Zwölf Bücher, naïve – 3 €"
    assert recogniser.text_of([0xC3]) == "�"
    assert sorted(recogniser.pieces_with_digits()) == sorted(b"%$&+=#@0123456789")


def test_prompt_of_a_multilingual_model(folder):
    recogniser = load_whisper(folder)
    assert recogniser.search_space("en").prompt == (START, NO_TIMESTAMPS)
    generation = recogniser.model.generation_config
    generation.is_multilingual = True
    generation.lang_to_id = {"<|en|>": ENGLISH, "<|de|>": GERMAN}
    generation.task_to_id = {"transcribe": TRANSCRIBE}
    assert recogniser.search_space("de").prompt == (START, GERMAN, TRANSCRIBE, NO_TIMESTAMPS)
    with pytest.raises(ParameterError, match=r"language 'dee' is not known to this model.*known: de, en"):
        recogniser.search_space("dee")


def test_windows_are_cut_where_it_is_quiet():
    samples = torch.rand(50_000) - 0.5
    samples[25_000:31_000] = 0.0
    parts = windows_of(samples, 32_000, 16_000)
    assert torch.equal(torch.cat(parts), samples)
    assert len(parts) == 2
    assert 25_000 < len(parts[0]) < 31_000
    assert [len(part) for part in windows_of(samples[:32_000], 32_000, 16_000)] == [32_000]
    assert all(0 < len(part) <= 4_000 for part in windows_of(samples, 4_000, 16_000))


def test_windows_are_joined_by_the_sum_of_scores():
    first = [ScoredHypothesis("a", -1.0), ScoredHypothesis("b", -2.0)]
    second = [ScoredHypothesis("c", -0.5), ScoredHypothesis("", -4.0)]
    joined = [(one.text, one.score) for one in join_windows([first, second], 3)]
    assert joined == [("a c", -1.5), ("b c", -2.5), ("a", -5.0)]
    assert join_windows([first], 3) == first
    # Spellings of the same words are one.
    found = merge_spellings([ScoredHypothesis(*pair) for pair in (("Go, on", -2.0), ("go on.", -1.0), ("gone", -3.0))])
    assert [(one.text, one.score) for one in found] == [("go on.", -1.0), ("gone", -3.0)]
