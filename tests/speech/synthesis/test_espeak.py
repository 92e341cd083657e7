import hashlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("espeakng_loader")

from tasks.speech.synthesis.espeak import SAMPLE_RATE, Synthesiser, Voice

SENTENCE = "The boy was there when the sun rose."
# One voice of each way in which eSpeak NG makes sound, each with state of its own: flutter, breath, noise, Klatt.
VOICES = [Voice("en-US", "f3"), Voice("en", "m7"), Voice("en-029", "croak"), Voice("en-GB-x-rp", "klatt2")]


@pytest.fixture(scope="module")
def synthesiser():
    return Synthesiser()


@pytest.mark.parametrize("voice", VOICES, ids=lambda voice: voice.name)
def test_what_was_spoken_before_does_not_change_a_sample(synthesiser, voice):
    first = synthesiser.speak(SENTENCE, voice)
    for other in VOICES:
        synthesiser.speak("Something else, of another length!", Voice(other.accent, other.timbre, 300, 90, 10))
        assert np.array_equal(synthesiser.speak(SENTENCE, voice), first)
    assert first.dtype == np.int16
    assert 1.0 < len(first) / SAMPLE_RATE < 4.0
    assert 500 < np.abs(first.astype(int)).max() < 32767


def test_another_process_makes_the_same_samples(synthesiser):
    code = (
        "import sys, hashlib; from tasks.speech.synthesis.espeak import *;"
        f"print(hashlib.sha256(Synthesiser().speak({SENTENCE!r}, Voice('en-US', 'f3')).tobytes()).hexdigest())"
    )
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)}
    here = hashlib.sha256(synthesiser.speak(SENTENCE, Voice("en-US", "f3")).tobytes()).hexdigest()
    assert runs == {f"{here}\n".encode()}


def test_nothing_to_speak_gives_no_sound_and_control_characters_are_no_commands(synthesiser):
    voice = Voice("en", "m3")
    for text in ("", "   ", "\0", "\x01\x02"):
        assert not synthesiser.speak(text, voice).any()
    faster = "one \x01400S two"  # a command to eSpeak NG: 400 words a minute from here
    assert np.array_equal(synthesiser.speak(faster, voice), synthesiser.speak("one  400S two", voice))
    assert np.array_equal(synthesiser.speak("one\0two", voice), synthesiser.speak("one two", voice))
