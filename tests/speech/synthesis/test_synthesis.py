"""Speech that eSpeak NG makes of a text: the same for the same text, voice and seed, and a corpus with its manifest."""

import hashlib
import json
import math
import sys
from random import Random

import numpy as np
import pytest
import soundfile
import torch
from command_results import measured, refusal, report
from stage_commands import settings

from tasks.language_model.normalisation import normalise
from tasks.speech.audio.manifest import read_manifest
from tasks.speech.synthesis.espeak import SAMPLE_RATE, Voice, speak
from tasks.speech.synthesis.synthetic_corpus import ACCENTS, TIMBRES, make_noise, spoken_text, synthesise

pytest.importorskip("espeakng_loader")
SENTENCE = "The boy was there when the sun rose."
# One voice of each way in which eSpeak NG makes sound, each with state of its own: flutter, breath, noise, Klatt.
VOICES = [Voice("en-US", "f3"), Voice("en", "m7"), Voice("en-029", "croak"), Voice("en-GB-x-rp", "klatt2")]
ENGLISH, SPANISH = VOICES[0], Voice("es-419", "f3")
SPEECH = slice(1600, -3200)
"""Without the silence around."""


def spoken(text, voices):
    return synthesise(text, voices, 16_000)


def test_noise_is_as_loud_as_the_ratio_says(text, tmp_path):
    loud, soft = (tmp_path / name for name in ("loud", "soft"))
    for output, ratio in ((loud, 0), (soft, 100)):
        limits = [f"synthesis.{name}_signal_to_noise={ratio}" for name in ("minimum", "maximum")]
        measured(*corpus(text, output, *limits))
    for one, other in zip(*(read_manifest(folder / "manifest.jsonl") for folder in (loud, soft)), strict=True):
        clean = soundfile.read(other.audio)[0]
        noise = soundfile.read(one.audio)[0] - clean
        # The level of the speech is that without the silence around it.
        assert 10 * math.log10(np.square(clean[SPEECH]).mean() / np.square(noise).mean()) == pytest.approx(0, abs=0.2)
    for kind in ("white", "pink", "babble"):
        made = make_noise(kind, 16_000, 16_000, np.random.default_rng(1))
        assert np.square(made).mean() == pytest.approx(1.0, abs=1e-3)


def test_the_sets_share_no_accent_and_no_timbre():
    for kind in (ACCENTS, TIMBRES):
        names = [name for of_set in kind.values() for name in of_set]
        assert len(names) == len(set(names))


def test_a_switch_adds_no_pause_and_each_word_is_said_by_the_voice_of_its_language():
    text = "I think the house of the dog la casa roja is not here"
    voices = [SPANISH if word in ("la", "casa", "roja") else ENGLISH for word in text.split()]
    english, spanish, mixed = (spoken(text, each) for each in (ENGLISH, SPANISH, voices))
    # Changing the voice inside eSpeak NG's text makes a clause of each island: 0.3 s more at each of its ends.
    assert min(len(english), len(spanish)) - 800 < len(mixed) < max(len(english), len(spanish)) + 800
    loud = (mixed[SPEECH].unfold(0, 160, 160).square().mean(dim=1) > 1e-6).nonzero()[:, 0]
    assert loud.diff().max() < 12  # Hundredths of a second: a plosive's closure, no pause.
    first, of_english, of_spanish = (each[1600:9600] / each[1600:9600].norm() for each in (mixed, english, spanish))
    assert torch.allclose(first, of_english, atol=1e-3)
    assert not torch.allclose(first, of_spanish, atol=1e-3)
    assert torch.equal(spoken(text, [ENGLISH] * len(voices)), english)


@pytest.mark.parametrize("voice", VOICES, ids=lambda voice: voice.name)
def test_what_was_spoken_before_does_not_change_a_sample(voice):
    first = speak(SENTENCE, voice)[0]
    for other in VOICES:
        speak("Something else, of another length!", Voice(other.accent, other.timbre, 300, 90, 10))
        assert np.array_equal(speak(SENTENCE, voice)[0], first)
    assert first.dtype == np.int16
    assert 1.0 < len(first) / SAMPLE_RATE < 4.0
    assert 500 < np.abs(first.astype(int)).max() < 32767


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Well, Tom's here; isn't he?", "well, tom's here; isn't he?"),
        ('"Stop!" he said.', "stop! he said."),
        ("THE US & UK -- at 'home'", "the us uk at home"),
        ("a well-known man – or so", "a well known man, or so"),
        ("(yes)", "yes"),
        ("100 %", "100"),
        ("...", ""),
    ],
)
def test_words_are_spoken_as_the_reference_has_them_with_their_pauses(text, said):
    assert spoken_text(text) == said


def test_the_recording_says_the_words_of_the_reference():
    chance, letters = Random(1), [*map(chr, range(0xD800)), *"ab'’.,- \"&" * 6000]
    for _ in range(300):
        text = "".join(chance.choices(letters, k=chance.randrange(30)))
        assert normalise(spoken_text(text)) == normalise(text)


LINES = ["Tom likes tea.", "He is 7.", "...", "One two three four five six seven.", "", "Ann likes milk, too.", "Yes?"]


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path / "text.txt"


def corpus(source, output, *values):
    """The command that makes a corpus."""
    return ["speech-corpus", "--output", output, *settings("kind=synthetic", f"source={source}", *values)]


def hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_text_becomes_recordings_with_a_manifest_and_every_line_is_accounted_for(text, tmp_path, capsys):
    document = report(*corpus(text, tmp_path / "out", "synthesis.maximum_words=5", "synthesis.voice_set=dev"))
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o600}
    utterances = read_manifest(tmp_path / "out" / "manifest.jsonl")
    assert {utterance.utterance_id: utterance.text for utterance in utterances} == {
        "dev-0000001": "Tom likes tea.", "dev-0000006": "Ann likes milk, too.", "dev-0000007": "Yes?",
    }  # fmt: skip
    assert all(utterance.synthetic and utterance.speaker.startswith("en-GB-x-gbclan+") for utterance in utterances)
    facts = [soundfile.info(utterance.audio) for utterance in utterances]
    assert {(fact.samplerate, fact.channels, fact.format) for fact in facts} == {(16000, 1, "FLAC")}
    found = document["measured"]
    assert found["synthetic"] is True
    assert found["audio_seconds"] == pytest.approx(sum(fact.duration for fact in facts), abs=0.001)
    assert (found["lines"], found["utterances"], found["words"]) == (7, 3, 8)
    left_out = {reason: count for reason, count in found["left_out"].items() if count}
    assert left_out == {"digits": 1, "no_words": 2, "too_long": 1}
    assert "Tom" not in json.dumps(document) + capsys.readouterr().err


def test_a_line_sounds_the_same_with_the_same_seed_whatever_else_is_spoken(text, tmp_path):
    values = {"every": [], "again": [], "other": ["synthesis.seed=2"], "drawn": ["synthesis.sentences=2"]}
    for name, chosen in values.items():
        measured(*corpus(text, tmp_path / name, *chosen))
    every, again, other, drawn = (hashes(tmp_path / name) for name in values)
    assert every == again != other
    sounds = {name: value for name, value in drawn.items() if name.endswith(".flac")}
    assert len(sounds) == 2
    assert sounds.items() <= every.items()


def test_a_second_run_replaces_its_folder_and_no_other(text, tmp_path):
    measured(*corpus(text, tmp_path / "out"))
    measured(*corpus(text, tmp_path / "out", "synthesis.sentences=1"))
    assert len(hashes(tmp_path / "out")) == 2
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    assert "is no folder of recordings" in refusal(*corpus(text, tmp_path / "thesis"))
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_what_cannot_be_spoken_is_one_line_without_the_text(text, tmp_path, monkeypatch):
    (tmp_path / "digits.txt").write_text("4 secrets\n...\n")
    error = refusal(*corpus(tmp_path / "digits.txt", tmp_path / "out"))
    assert "none of 2 lines can be spoken (digits 1, no_words 1)" in error
    assert "secrets" not in error
    assert not (tmp_path / "out").exists()
    for setting, message in [
        ("minimum_signal_to_noise=30", "minimum_signal_to_noise (30.0) is above maximum_signal_to_noise (25.0)"),
    ]:
        assert message in refusal(*corpus(text, tmp_path / "out", f"synthesis.{setting}"))
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    assert "pip install 'palimpsest[synthesis]'" in refusal(*corpus(text, tmp_path / "out"))
