import hashlib
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from tasks.speech.synthesis.espeak import SAMPLE_RATE, Synthesiser, Voice
from tasks.speech.synthesis.synthetic_corpus import (
    ACCENTS,
    TIMBRES,
    Noise,
    synthesise,
)

pytest.importorskip("espeakng_loader")
VOICE = Voice("en-US", "f3")
SETS = ("train", "dev", "test")


def test_noise_is_as_loud_as_the_ratio_says():
    clean = synthesise("hello there my friend", VOICE, None, np.random.default_rng(1))
    spoken = clean[1600:-3200]  # without the silence around
    for ratio in (0.0, 20.0):
        noisy = synthesise("hello there my friend", VOICE, Noise("pink", ratio), np.random.default_rng(1))
        measured = 10 * math.log10(spoken.square().mean() / (noisy - clean).square().mean())
        assert measured == pytest.approx(ratio, abs=0.1)


def test_the_sets_share_no_accent_and_no_timbre_and_every_voice_can_be_heard():
    for kind in (ACCENTS, TIMBRES):
        names = [name for voice_set in SETS for name in kind[voice_set]]
        assert len(names) == len(set(names))
    synthesiser = Synthesiser()
    seen = set()
    for voice_set in SETS:
        for accent, timbre in itertools.product(ACCENTS[voice_set], TIMBRES[voice_set]):
            voice = Voice(accent, timbre)
            samples = synthesiser.speak("ago", voice)
            assert 100 < np.abs(samples.astype(int)).max() < 32767, voice.name
            seen.add(samples.tobytes())
    assert len(seen) == sum(len(ACCENTS[name]) * len(TIMBRES[name]) for name in SETS)


def test_a_switch_adds_no_pause_and_each_word_is_said_by_the_voice_of_its_language():
    text = "I think the house of the dog la casa roja is not here"
    english, spanish = Voice("en-US", "f3"), Voice("es-419", "f3")
    voices = [spanish if word in ("la", "casa", "roja") else english for word in text.split()]
    alone = [synthesise(text, voice, None, np.random.default_rng(1)) for voice in (english, spanish)]
    mixed = synthesise(text, voices, None, np.random.default_rng(1))
    # Changing the voice inside eSpeak NG's text makes a clause of each island: 0.3 s more at each of its ends.
    assert min(map(len, alone)) - 800 < len(mixed) < max(map(len, alone)) + 800
    loud = (mixed[1600:-3200].unfold(0, 160, 160).square().mean(dim=1) > 1e-6).nonzero()[:, 0]
    assert loud.diff().max() < 12  # Hundredths of a second: a plosive's closure, no pause.

    def heard(signal, begin, end):
        return signal[1600 + begin : 1600 + end] / signal[1600 + begin : 1600 + end].norm()

    assert torch.allclose(heard(mixed, 0, 8000), heard(alone[0], 0, 8000), atol=1e-3)
    assert not torch.allclose(heard(mixed, 0, 8000), heard(alone[1], 0, 8000), atol=1e-3)
    assert torch.equal(synthesise(text, [english] * len(voices), None, np.random.default_rng(1)), alone[0])


pytest.importorskip("espeakng_loader")
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
