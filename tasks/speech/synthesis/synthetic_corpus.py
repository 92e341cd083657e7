"""A folder of synthetic recordings with their manifest, made from a text of one sentence a line."""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
from tasks.language_model.normalisation import normalise
from tasks.speech.audio.manifest import Utterance, write_manifest
from tasks.speech.audio.settings import SynthesisSettings

DIGITS = "digits"
NO_WORDS = "no_words"
OTHER_SCRIPT = "other_script"
TOO_SHORT = "too_short"
TOO_LONG = "too_long"

_PAUSES = ",.;:?!"
_CLOSING = "\"'”’)]}»"


def why_not_spoken(text: str, minimum_words: int, maximum_words: int) -> str | None:
    """The reason why a sentence cannot have a reference recording, or ``None``.

    ``digits``: how a number is read is open, and the reference would not say it. ``other_script``: letters that are
    not Latin, which an English voice spells out.
    """
    words = normalise(text)
    if not words:
        return NO_WORDS
    if any(character.isnumeric() for character in text):
        return DIGITS
    if any(not _is_latin(character) for word in words for character in word):
        return OTHER_SCRIPT
    if len(words) < minimum_words:
        return TOO_SHORT
    return TOO_LONG if len(words) > maximum_words else None


def spoken_text(text: str) -> str:
    """The normalised words with the marks that make pauses and tunes behind them.

    So the recording says what the reference says: a synthesiser reads ``&`` and ``%`` out, spells words in capitals
    and reads some marks aloud, and the reference has none of that.
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


def _is_latin(character: str) -> bool:
    return character.isascii() or unicodedata.name(character, "").startswith(("LATIN", "COMBINING"))


MANIFEST_NAME = "manifest.jsonl"
NOT_DRAWN = "not_drawn"
NOT_SPOKEN = "not_spoken"
REASONS = (DIGITS, NO_WORDS, OTHER_SCRIPT, TOO_SHORT, TOO_LONG, NOT_DRAWN, NOT_SPOKEN)


@dataclass
class SynthesisTally:
    """What became of every line; utterances and the numbers of ``left_out`` add up to ``lines``."""

    lines: int = 0
    utterances: int = 0
    words: int = 0
    """Of the sentences spoken."""
    seconds: float = 0.0
    """Of audio."""
    speakers: set[str] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(REASONS, 0)))


def synthesise_corpus(text: str | Path, output: str | Path, settings: SynthesisSettings) -> SynthesisTally:
    """Write a FLAC file per sentence and ``manifest.jsonl`` into a folder, complete or not at all.

    Utterances are named by the voice set and the number of their line. Voice and noise of a line depend on the seed
    and that number alone, so a line sounds the same whatever else is spoken. Raises ``SpeechError`` where no sentence
    is left, or where ``output`` is a folder with other things in it.
    """
    from tasks.speech.synthesis.espeak import Synthesiser

    synthesiser = Synthesiser()
    _check_output(Path(output))
    tally = SynthesisTally()
    sentences = list(_chosen(text, settings, tally))
    with atomic_folder(output, private=True) as folder:
        utterances = []
        for number, sentence in tqdm(sentences, desc="speaking", unit=" sentences", disable=None, leave=False):
            name = f"{settings.voice_set}-{number:07d}"
            spoken = _speak(sentence, number, settings, folder / f"{name}.flac", synthesiser)
            if spoken is None:
                tally.left_out[NOT_SPOKEN] += 1
                continue
            speaker, seconds = spoken
            utterances.append(Utterance(name, folder / f"{name}.flac", sentence, speaker, synthetic=True))
            tally.utterances += 1
            tally.words += len(normalise(sentence))
            tally.seconds += seconds
            tally.speakers.add(speaker)
        if not utterances:
            raise SpeechError(f"text {str(text)!r}: none of {tally.lines} lines can be spoken ({_listed(tally)})")
        write_manifest(folder / MANIFEST_NAME, utterances)
    return tally


def _listed(tally: SynthesisTally) -> str:
    found = [f"{reason} {count}" for reason, count in tally.left_out.items() if count]
    return ", ".join(found) or "the text is empty"


def _check_output(output: Path) -> None:
    if output.is_file() or (output.is_dir() and any(output.iterdir()) and not (output / MANIFEST_NAME).is_file()):
        raise SpeechError(
            f"output {str(output)!r} is there and is no folder of recordings; name a new or an empty folder"
        )


def _chosen(text: str | Path, settings: SynthesisSettings, tally: SynthesisTally) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and sentences, in the order of the text."""
    import numpy

    suitable = []
    for number, line in enumerate(read_lines(text), start=1):
        tally.lines += 1
        reason = why_not_spoken(line, settings.minimum_words, settings.maximum_words)
        if reason is None:
            suitable.append((number, line))
        else:
            tally.left_out[reason] += 1
    wanted = len(suitable) if settings.sentences is None else min(settings.sentences, len(suitable))
    tally.left_out[NOT_DRAWN] += len(suitable) - wanted
    drawn = numpy.random.default_rng(settings.seed).permutation(len(suitable))[:wanted]
    for index in sorted(drawn.tolist()):
        yield suitable[index]


def _speak(
    sentence: str, number: int, settings: SynthesisSettings, path: Path, synthesiser: object
) -> tuple[str, float] | None:
    """Speaker and length in seconds of what was written, or ``None`` where nothing could be spoken."""
    import numpy
    import soundfile

    from tasks.speech.synthesis.utterance_synthesis import draw_noise, draw_voice, synthesise

    generator = numpy.random.default_rng((settings.seed, number))
    voice, noise = draw_voice(settings, generator), draw_noise(settings, generator)
    samples = synthesise(
        sentence,
        voice,
        noise,
        generator,
        sample_rate=settings.sample_rate,
        synthesiser=synthesiser,  # type: ignore[arg-type]
    )
    if not len(samples):
        return None
    soundfile.write(path, samples.numpy(), settings.sample_rate, format="FLAC", subtype="PCM_16")
    path.chmod(PRIVATE_MODE)
    return voice.name, len(samples) / settings.sample_rate
