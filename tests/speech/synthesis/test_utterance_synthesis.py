import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("espeakng_loader")

from tasks.speech.audio.settings import SynthesisSettings
from tasks.speech.synthesis.espeak import Synthesiser, Voice
from tasks.speech.synthesis.synthetic_corpus import (
    ACCENTS,
    TIMBRES,
    Noise,
    draw_noise,
    draw_voices,
    make_noise,
    synthesise,
)

VOICE = Voice("en-US", "f3")
SETS = ("train", "dev", "test")


def power_between(noise, low, high, rate=16000):
    spectrum = np.square(np.abs(np.fft.rfft(noise)))
    frequencies = np.fft.rfftfreq(len(noise), 1 / rate)
    return spectrum[(frequencies >= low) & (frequencies < high)].sum()


def test_noise_has_power_one_and_comes_from_its_generator_alone():
    for kind in ("white", "pink", "babble"):
        noise, again, other = (make_noise(kind, 16001, 16000, np.random.default_rng(seed)) for seed in (3, 3, 4))
        assert noise.shape == (16001,)
        assert noise.dtype == np.float32
        assert np.square(noise).mean() == pytest.approx(1.0, rel=1e-4)
        assert np.array_equal(noise, again)
        assert not np.array_equal(noise, other)


def test_noises_have_their_spectra():
    white, pink, babble = (
        make_noise(kind, 160000, 16000, np.random.default_rng(1)) for kind in ("white", "pink", "babble")
    )
    # Twice the bandwidth: twice the power of white noise, the same of pink noise.
    assert power_between(white, 2000, 4000) / power_between(white, 1000, 2000) == pytest.approx(2, rel=0.05)
    assert power_between(pink, 2000, 4000) / power_between(pink, 1000, 2000) == pytest.approx(1, rel=0.05)
    # Amplitude falls as f ** -1.5, power density as f ** -3: two octaves of white weighted so, 2 / 8.
    assert power_between(babble, 2000, 4000) / power_between(babble, 1000, 2000) == pytest.approx(1 / 4, rel=0.1)
    # And babble moves in loudness, as white noise does not.
    loudness = [np.square(noise).reshape(-1, 800).mean(axis=1) for noise in (babble, white)]  # of 50 ms each
    spread_of_babble, spread_of_white = (blocks.std() / blocks.mean() for blocks in loudness)
    assert spread_of_babble > 3 * spread_of_white


def test_noise_is_as_loud_as_the_ratio_says():
    clean = synthesise("hello there my friend", VOICE, None, np.random.default_rng(1))
    spoken = clean[1600:-3200]  # without the silence around
    for ratio in (0.0, 20.0):
        noisy = synthesise("hello there my friend", VOICE, Noise("pink", ratio), np.random.default_rng(1))
        measured = 10 * math.log10(spoken.square().mean() / (noisy - clean).square().mean())
        assert measured == pytest.approx(ratio, abs=0.1)


def test_an_utterance_has_one_loudness_and_silence_around_it():
    for voice in (VOICE, Voice("en", "klatt2"), Voice("en-029", "paul")):
        samples = synthesise("Good morning.", voice, None, np.random.default_rng(1))
        assert samples.dtype == torch.float32
        assert not samples[:1500].any()
        assert not samples[-3100:].any()
        assert 10 * math.log10(samples[1600:-3200].square().mean()) == pytest.approx(-26, abs=0.1)


def test_another_sample_rate_takes_the_same_time_and_nothing_to_speak_is_an_empty_signal():
    lengths = [
        len(synthesise("Good morning.", VOICE, None, np.random.default_rng(1), sample_rate=rate)) / rate
        for rate in (8000, 16000, 22050)
    ]
    assert max(lengths) - min(lengths) < 0.001
    assert synthesise("...", VOICE, Noise("white", 0.0), np.random.default_rng(1)).shape == (0,)


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


def test_voices_and_noise_are_drawn_within_the_settings():
    settings = SynthesisSettings(
        voice_set="dev", minimum_rate=150, maximum_rate=152, noise_kinds=["pink"], minimum_signal_to_noise=20.0
    )
    generator = np.random.default_rng(1)
    synthesiser = Synthesiser()
    drawn = [draw_voices(settings, generator, synthesiser) for _ in range(200)]
    assert {tuple(voices) for voices in drawn} == {("en",)}
    voices = [voices["en"] for voices in drawn]
    assert {voice.rate for voice in voices} == {150, 151, 152}
    assert {voice.timbre for voice in voices} == set(TIMBRES["dev"])
    assert {voice.accent for voice in voices} == set(ACCENTS["dev"])
    assert min(voice.pitch for voice in voices) >= 35
    assert max(voice.pitch_range for voice in voices) <= 70
    noises = [draw_noise(settings, generator) for _ in range(50)]
    assert {noise.kind for noise in noises} == {"pink"}
    assert all(20 <= noise.signal_to_noise <= 25 for noise in noises)
    assert draw_noise(SynthesisSettings(noise_kinds=[]), generator) is None


def test_a_speaker_of_two_languages_is_one_voice_with_two_accents():
    generator = np.random.default_rng(1)
    settings = SynthesisSettings(voice_set="test", languages=["en", "es"])
    drawn = [draw_voices(settings, generator, Synthesiser()) for _ in range(50)]
    assert {voices["es"].accent for voices in drawn} == {"es", "es-419"}
    assert {voices["en"].accent for voices in drawn} == set(ACCENTS["test"])
    assert all(replace(voices["es"], accent=voices["en"].accent) == voices["en"] for voices in drawn)


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
