import hashlib
import json
import sys

import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from stage_commands import settings

from tasks.cli import main
from tasks.language_model.normalisation import normalise
from tasks.speech.audio.manifest import read_manifest
from tasks.speech.synthesis.synthetic_corpus import spoken_text

pytest.importorskip("espeakng_loader")
LINES = ["Tom likes tea.", "He is 7.", "...", "One two three four five six seven.", "", "Ann likes milk, too.", "Yes?"]


def synthesis(source, output, *values):
    """The command that makes a corpus."""
    return ["speech-corpus", "--output", str(output), *settings("kind=synthetic", f"source={source}", *values)]


def made(folder, source, *values):
    """Hashes of the files of a new corpus."""
    assert main(synthesis(source, folder, *values)) == 0
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(line + "\n" for line in LINES))
    return path


def test_a_text_becomes_recordings_with_a_manifest_and_every_line_is_accounted_for(text, tmp_path, capsys):
    report = tmp_path / "report.json"
    values = ["synthesis.maximum_words=5", "synthesis.voice_set=dev"]
    assert main([*synthesis(text, tmp_path / "out", *values), "--report", str(report)]) == 0
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
        made(tmp_path / name, text, *values)
        for name, values in {
            "every": [], "again": [], "other": ["synthesis.seed=2"], "drawn": ["synthesis.sentences=2"],
        }.items()
    )  # fmt: skip
    assert every == again != other
    sounds = {name for name in drawn if name.endswith(".flac")}
    assert len(sounds) == 2
    assert {name: every[name] for name in sounds} == {name: drawn[name] for name in sounds}


def test_a_second_run_replaces_its_folder_and_no_other(text, tmp_path, refusal):
    made(tmp_path / "out", text)
    assert len(made(tmp_path / "out", text, "synthesis.sentences=1")) == 2
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    assert "is no folder of recordings" in refusal(*synthesis(text, tmp_path / "thesis"))
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_what_cannot_be_spoken_is_one_line_without_the_text(text, tmp_path, refusal, monkeypatch):
    (tmp_path / "digits.txt").write_text("4 secrets\n...\n")
    error = refusal(*synthesis(tmp_path / "digits.txt", tmp_path / "out"))
    assert "none of 2 lines can be spoken (digits 1, no_words 1)" in error
    assert "secrets" not in error
    assert not (tmp_path / "out").exists()
    for setting, message in [
        ("noise_kinds=[pinkk]", "noise_kinds.0"),
        ("minimum_signal_to_noise=30", "minimum_signal_to_noise (30.0) is above maximum_signal_to_noise (25.0)"),
        ("sentences=0", "sentences"),
    ]:
        assert message in refusal(*synthesis(text, tmp_path / "out", f"synthesis.{setting}"))
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    assert "pip install 'palimpsest[synthesis]'" in refusal(*synthesis(text, tmp_path / "out"))


def test_words_are_spoken_as_the_reference_has_them_with_their_pauses():
    for text, spoken in [
        ("Well, Tom's here; isn't he?", "well, tom's here; isn't he?"),
        ('"Stop!" he said.', "stop! he said."),
        ("THE US & UK -- at 'home'", "the us uk at home"),
        ("a well-known man – or so", "a well known man, or so"),
        ("(yes)", "yes"),
        ("100 %", "100"),
        ("...", ""),
    ]:
        assert spoken_text(text) == spoken


@given(st.text() | st.text("ab'’.,- \"&", max_size=30))
def test_the_recording_says_the_words_of_the_reference(text):
    assert normalise(spoken_text(text)) == normalise(text)
