import hashlib
import json
import sys

import pytest
import soundfile

pytest.importorskip("espeakng_loader")

from stage_commands import settings

from tasks.cli import main
from tasks.speech.audio.manifest import read_manifest

LINES = ["Tom likes tea.", "He is 7.", "...", "One two three four five six seven.", "", "Ann likes milk, too.", "Yes?"]


def synthesise(*arguments):
    return main(["speech-corpus", "--set", "kind=synthetic", *map(str, arguments)])


def made(folder, *values):
    """Hashes of the files of a new corpus."""
    assert synthesise(*settings(*values), "--output", folder) == 0
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(line + "\n" for line in LINES))
    return path


def test_a_text_becomes_recordings_with_a_manifest_and_every_line_is_accounted_for(text, tmp_path, capsys):
    report = tmp_path / "report.json"
    options = ["--set", "synthesis.maximum_words=5", "--set", "synthesis.voice_set=dev", "--report", report]
    assert synthesise("--set", f"source={text}", "--output", tmp_path / "out", *options) == 0
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o600}
    utterances = read_manifest(tmp_path / "out" / "manifest.jsonl")
    assert {utterance.utterance_id: utterance.text for utterance in utterances} == {
        "dev-0000001": "Tom likes tea.",
        "dev-0000006": "Ann likes milk, too.",
        "dev-0000007": "Yes?",
    }
    assert all(utterance.synthetic for utterance in utterances)
    assert all(utterance.speaker.startswith("en-GB-x-gbclan+") for utterance in utterances)
    facts = [soundfile.info(utterance.audio) for utterance in utterances]
    assert {(fact.samplerate, fact.channels, fact.format) for fact in facts} == {(16000, 1, "FLAC")}
    measured = json.loads(report.read_text())["measured"]
    assert measured["synthetic"] is True
    assert measured["audio_seconds"] == pytest.approx(sum(fact.duration for fact in facts), abs=0.001)
    assert (measured["lines"], measured["utterances"], measured["words"]) == (7, 3, 8)
    left_out = {"digits": 1, "no_words": 2, "too_long": 1}
    assert {reason: count for reason, count in measured["left_out"].items() if count} == left_out
    assert "Tom" not in report.read_text() + capsys.readouterr().err


def test_a_line_sounds_the_same_with_the_same_seed_whatever_else_is_spoken(text, tmp_path):
    every, again, other, drawn = (
        made(tmp_path / name, f"source={text}", *options)
        for name, options in {
            "every": [], "again": [], "other": ["synthesis.seed=2"], "drawn": ["synthesis.sentences=2"],
        }.items()
    )  # fmt: skip
    assert every == again != other
    sounds = {name for name in drawn if name.endswith(".flac")}
    assert len(sounds) == 2
    assert {name: every[name] for name in sounds} == {name: drawn[name] for name in sounds}


def test_a_second_run_replaces_its_folder_and_no_other(text, tmp_path, capsys):
    output = tmp_path / "out"
    assert synthesise("--set", f"source={text}", "--output", output) == 0
    assert synthesise("--set", f"source={text}", "--output", output, "--set", "synthesis.sentences=1") == 0
    assert len(list(output.iterdir())) == 2
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    assert synthesise("--set", f"source={text}", "--output", tmp_path / "thesis") == 1
    assert "is no folder of recordings" in capsys.readouterr().err
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_a_text_without_a_sentence_is_an_error_with_the_reasons(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("4 secrets\n...\n")
    assert synthesise("--set", f"source={tmp_path}/text.txt", "--output", tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert "none of 2 lines can be spoken (digits 1, no_words 1)" in error
    assert "secrets" not in error
    assert not (tmp_path / "out").exists()


def test_wrong_settings_are_one_line_and_without_the_package_it_says_what_to_install(
    text, tmp_path, monkeypatch, capsys
):
    for setting, message in [
        ("noise_kinds=[pinkk]", "noise_kinds.0"),
        ("minimum_signal_to_noise=30", "minimum_signal_to_noise (30.0) is above maximum_signal_to_noise (25.0)"),
        ("sentences=0", "sentences"),
    ]:
        assert synthesise("--set", f"source={text}", "--output", tmp_path / "out", "--set", f"synthesis.{setting}") == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    assert synthesise("--set", f"source={text}", "--output", tmp_path / "out") == 1
    assert "pip install 'palimpsest[synthesis]'" in capsys.readouterr().err
