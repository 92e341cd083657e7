"""A folder of synthetic recordings with their manifest, made from a text of one sentence a line.

An utterance is speech at the recogniser's sample rate, at a fixed level, with noise. The voice sets for training,
tuning and testing share no accent and no timbre. Left out are eSpeak NG's robots, echoes, whispers, croaks and cartoon
voices, and copies of other timbres. Timbres of one family, such as the variants of one formant table, are in one set.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Literal

import numpy
import soundfile
import torch
from tqdm import tqdm

from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
from tasks.language_model.normalisation import normalise
from tasks.languages.word_languages import spoken_languages
from tasks.speech.audio.audio_file import resample
from tasks.speech.audio.manifest import Utterance, write_manifest
from tasks.speech.audio.settings import SynthesisSettings, VoiceSet
from tasks.speech.synthesis.espeak import SAMPLE_RATE, Voice, accents_of, speak

NoiseKind = Literal["white", "pink", "babble"]
_NOISES: tuple[NoiseKind, ...] = ("white", "pink", "babble")
_SPEECH_CORNER = 500.0
"""Hz above which the long-term spectrum of speech falls, by about 9 dB an octave (Byrne et al. 1994)."""
_LOWEST = 50.0
"""Hz below which there is no noise, since there is no speech to mask."""
_SYLLABLES = 4.0
"""Hz: rate of the loudness changes of speech."""


def make_noise(kind: NoiseKind, samples: int, sample_rate: int, generator: numpy.random.Generator) -> numpy.ndarray:
    """Noise of mean power 1, float32 (samples,).

    ``white`` has the same power in each Hz, ``pink`` in each octave. ``babble`` has the long-term spectrum of speech
    and its rate of loudness changes.
    """
    from scipy import fft

    white = generator.standard_normal(samples, dtype=numpy.float32)
    if kind == "white":
        noise = white
    else:
        size = fft.next_fast_len(samples, real=True)
        frequencies = numpy.maximum(fft.rfftfreq(size, 1 / sample_rate), _LOWEST).astype(numpy.float32)
        if kind == "pink":
            gain = (_LOWEST / frequencies) ** 0.5
        else:
            gain = numpy.minimum(1.0, _SPEECH_CORNER / frequencies) ** 1.5
        gain[0] = 0.0
        noise = fft.irfft(fft.rfft(white, size) * gain, size)[:samples]
        if kind == "babble":
            # A gain that changes at the rate of syllables: random points joined by straight lines.
            points = max(2, int(samples / sample_rate * 2 * _SYLLABLES) + 2)
            gains = generator.uniform(0.3, 1.7, points).astype(numpy.float32)
            loudness = numpy.interp(numpy.linspace(0, points - 1, samples), numpy.arange(points), gains)
            noise = noise * loudness.astype(numpy.float32)
    power = float(numpy.mean(numpy.square(noise, dtype=numpy.float64)))
    return (noise / max(power, 1e-12) ** 0.5).astype(numpy.float32)


ACCENTS: dict[VoiceSet, tuple[str, ...]] = {
    "train": ("en-US", "en", "en-GB-scotland", "en-029", "en-GB-x-gbcwmd"),
    "dev": ("en-GB-x-gbclan",),
    "test": ("en-US-nyc", "en-GB-x-rp"),
}
"""American, British, Scottish, Caribbean, West Midlands; Lancaster; New York, Received Pronunciation."""

TIMBRES: dict[VoiceSet, tuple[str, ...]] = {
    "train": tuple(
        (
            "Alex Alicia Andrea Andy Annie Denis Jacky Lee Marco Mario Michael Mike antonio david ed edward f1 f3 "
            "gustave ian john m2 m4 m5 m6 m8 max miguel pablo rob robert sandro steph travis victor"
        ).split()
    ),
    "dev": ("f5", "linda", "m1", "paul"),
    "test": ("Gene", "f2", "f4", "m3", "m7", "shelby"),
}
"""Files of ``voices/!v``."""

_ENGLISH = "en"
_RATE = (140, 200)
"""Slowest and fastest speech, in words a minute."""
_PITCH, _PITCH_RANGE = (35, 65), (30, 70)
"""Lowest and highest, on eSpeak NG's scale from 0 to 99: shift of a voice's pitch, and range of the pitch."""


_LEVEL = -26.0
"""Mean power of the speech in dB below full scale, the usual level of telephone speech."""
_SILENCE_BEFORE, _SILENCE_AFTER = 0.1, 0.2
"""Seconds. Real recordings do not begin and end with the first and last sound, and a streaming recogniser needs some
more frames to output the last sound."""
_SEAM = round(0.005 * SAMPLE_RATE)
"""Samples of the cross-fade from one voice to the next."""


def synthesise(text: str, voices: Voice | Sequence[Voice], sample_rate: int) -> torch.Tensor:
    """A spoken sentence without noise, float32 (samples,) at ``sample_rate`` Hz; empty if nothing can be spoken.

    ``voices``: one for all words, or one for each white-space word of ``text``. Each voice speaks the whole sentence,
    and the parts are cut together at word boundaries. So a change of voice brings no pause and no drawn-out word, as a
    change inside eSpeak NG does (it ends a clause there). The words are those of ``normalise(text)``. Raises the errors
    of ``speak``.
    """
    spoken = spoken_text(text)
    if isinstance(voices, Voice):
        raw, _ = speak(spoken, voices)
    else:
        each = [voice for token, voice in zip(text.split(), voices, strict=True) for _ in normalise(token)]
        raw = _cut_together(spoken, each)
    if not raw.any():
        return torch.zeros(0)
    speech = resample(torch.from_numpy(raw.astype(numpy.float32) / 32768), SAMPLE_RATE, sample_rate)
    speech = speech * (10 ** (_LEVEL / 20) / speech.square().mean().sqrt())
    silence = (round(_SILENCE_BEFORE * sample_rate), round(_SILENCE_AFTER * sample_rate))
    return torch.nn.functional.pad(speech, silence)


def _cut_together(text: str, voices: Sequence[Voice]) -> numpy.ndarray:
    """Speech of a text whose white-space words have these voices, int16 (samples,)."""
    if len(set(voices)) < 2:
        return speak(text, voices[0])[0] if voices else numpy.zeros(0, dtype=numpy.int16)
    speeches = {voice: speak(text, voice) for voice in dict.fromkeys(voices)}
    begins = [match.start() for match in re.finditer(r"\S+", text)]
    spoken, last = numpy.zeros(0), 0
    for place, (voice, following) in enumerate(zip(voices, [*voices[1:], None], strict=True), start=1):
        if voice == following:
            continue
        samples, words = speeches[voice]
        # Words begin at these samples; inside two words spoken as one, in proportion.
        starts = numpy.interp(begins, sorted(words), [words[offset] for offset in sorted(words)]).round().astype(int)
        part = samples[starts[last] if last else 0 : None if following is None else starts[place] + _SEAM]
        part = part.astype(numpy.float64)
        # The cross-fade from the previous voice to this one.
        seam = min(_SEAM, len(part), len(spoken))
        rising = numpy.linspace(0, 1, seam)
        part[:seam] = part[:seam] * rising + spoken[len(spoken) - seam :] * (1 - rising)
        spoken, last = numpy.concatenate([spoken[: len(spoken) - seam], part]), place
    return spoken.round().astype(numpy.int16)


_PAUSES = ",.;:?!"
_CLOSING = "\"'”’)]}»"


def why_not_spoken(text: str, minimum_words: int, maximum_words: int) -> str | None:
    """The reason why a sentence cannot have a reference recording, or ``None``.

    ``digits``: the reading of a number is ambiguous, so the reference may differ. ``other_script``: letters that are
    not Latin, which an English voice spells out.
    """
    words = normalise(text)
    if not words:
        return "no_words"
    if any(character.isnumeric() for character in text):
        return "digits"
    letters = (character for word in words for character in word if not character.isascii())
    if not all(unicodedata.name(letter, "").startswith(("LATIN", "COMBINING")) for letter in letters):
        return "other_script"
    if len(words) < minimum_words:
        return "too_short"
    return "too_long" if len(words) > maximum_words else None


def spoken_text(text: str) -> str:
    """The normalised words, each followed by the punctuation that makes pauses and intonation.

    So the recording matches the reference: a synthesiser reads ``&`` and ``%`` out, spells words in capitals and reads
    some marks aloud, none of which the reference has.
    """
    parts = []
    for token in text.split():
        words = normalise(token)
        mark = token.rstrip(_CLOSING)[-1:]
        if words:
            parts.append(" ".join(words) + (mark if mark in _PAUSES else ""))
        elif parts and token in ("-", "–", "—"):
            parts[-1] = parts[-1].rstrip(_PAUSES) + ","
    spoken = " ".join(parts)
    words = normalise(text)
    return spoken if normalise(spoken) == words else " ".join(words)


_MANIFEST = "manifest.jsonl"
_CORPUS_RATE = 16_000
"""Sample rate of the recordings in Hz."""


def synthesise_corpus(
    text: str | Path, output: str | Path, settings: SynthesisSettings
) -> tuple[list[Utterance], float, Counter[str]]:
    """Write a FLAC file per sentence and ``manifest.jsonl`` into a folder, complete or not at all.

    Returns the utterances, their seconds together, and counts of the other lines by reason.

    Utterances are named by the voice set and the number of their line. Voice and noise of a line depend on the seed
    and that number only, so a line sounds the same whatever else is spoken. With several languages, the language of
    each word is inferred from all sentences. Raises ``SpeechError`` if no sentence is usable, or if ``output`` is a
    folder with other contents.
    """
    output = Path(output)
    if output.is_file() or (output.is_dir() and any(output.iterdir()) and not (output / _MANIFEST).is_file()):
        raise SpeechError(
            f"output {str(output)!r} exists and is no folder of recordings; name a new or an empty folder"
        )
    lines = list(read_lines(text))
    reasons = [why_not_spoken(line, settings.minimum_words, settings.maximum_words) for line in lines]
    left_out = Counter(filter(None, reasons))
    sentences = [each for each, reason in zip(enumerate(lines, start=1), reasons, strict=True) if not reason]
    if settings.sentences is not None and settings.sentences < len(sentences):
        left_out["not_drawn"] = len(sentences) - settings.sentences
        drawn = numpy.random.default_rng(settings.seed).permutation(len(sentences))[: settings.sentences]
        sentences = [sentences[index] for index in sorted(drawn.tolist())]
    languages: Iterator[list[str] | None] = repeat(None, len(sentences))
    if settings.languages:
        languages = spoken_languages(settings.languages, [sentence for _, sentence in sentences])
    utterances, samples_written = [], 0
    with atomic_folder(output, private=True) as folder:
        bar = tqdm(sentences, desc="speaking", unit=" sentences", disable=None, leave=False)
        for (number, sentence), of_words in zip(bar, languages, strict=True):
            generator = numpy.random.default_rng((settings.seed, number))
            samples, speaker = speak_drawn(sentence, of_words, settings, generator)
            if not len(samples):
                left_out["not_spoken"] += 1
                continue
            name = f"{settings.voice_set}-{number:07d}"
            audio = folder / f"{name}.flac"
            soundfile.write(audio, samples.numpy(), _CORPUS_RATE, format="FLAC", subtype="PCM_16")
            audio.chmod(PRIVATE_MODE)
            of_tokens = tuple(of_words) if of_words else None
            utterances.append(Utterance(name, audio, sentence, speaker, synthetic=True, languages=of_tokens))
            samples_written += len(samples)
        if not utterances:
            found = ", ".join(f"{reason} {count}" for reason, count in left_out.items())
            raise SpeechError(
                f"text {str(text)!r}: none of {len(lines)} lines can be spoken ({found or 'the text is empty'})"
            )
        write_manifest(folder / _MANIFEST, utterances)
    return utterances, samples_written / _CORPUS_RATE, left_out


def speak_drawn(
    sentence: str,
    languages: Sequence[str] | None,
    settings: SynthesisSettings,
    generator: numpy.random.Generator,
    *,
    sample_rate: int = _CORPUS_RATE,
    is_quiet: bool = False,
) -> tuple[torch.Tensor, str]:
    """A sentence in [-1, 1] by a drawn speaker, with noise of a drawn kind and level, and the speaker's name.

    The speaker has a voice for each of the settings' languages, of the same timbre, rate and pitch. All numbers are
    drawn uniformly between their limits. Voice sets share no English accent; other languages have few accents, and all
    sets have them. ``languages``: of each white-space word, if there are several. ``is_quiet``: without noise.
    """
    accents = {
        language: ACCENTS[settings.voice_set] if language == _ENGLISH else accents_of(language)
        for language in settings.languages or [_ENGLISH]
    }
    first, *others = accents
    voice = Voice(
        accent=str(generator.choice(accents[first])),
        timbre=str(generator.choice(TIMBRES[settings.voice_set])),
        rate=int(generator.integers(*_RATE, endpoint=True)),
        pitch=int(generator.integers(*_PITCH, endpoint=True)),
        pitch_range=int(generator.integers(*_PITCH_RANGE, endpoint=True)),
    )
    voices = {first: voice}
    voices |= {code: replace(voice, accent=str(generator.choice(accents[code]))) for code in others}
    of_words = voice if languages is None else [voices[language] for language in languages]
    if not is_quiet:
        kind = _NOISES[int(generator.integers(len(_NOISES)))]
        ratio = float(generator.uniform(settings.minimum_signal_to_noise, settings.maximum_signal_to_noise))
    speech = synthesise(sentence, of_words, sample_rate)
    if len(speech) and not is_quiet:
        noise = torch.from_numpy(make_noise(kind, len(speech), sample_rate, generator))
        speech += 10 ** ((_LEVEL - ratio) / 20) * noise
    return speech.clamp_(-1.0, 1.0), voice.name
