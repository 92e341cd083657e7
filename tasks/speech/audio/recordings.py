"""What a published corpus of speech yields: candidates for a manifest, and what was left out and why."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.speech.audio.audio_file import audio_facts
from tasks.speech.audio.manifest import Utterance, problem_list

NO_RECORDING = "no_recording"
NO_TRANSCRIPT = "no_transcript"
NO_WORDS = "no_words"
NOT_CONVERTED = "not_converted"
DUPLICATE = "duplicate"
UNREADABLE = "unreadable"
TOO_LONG = "too_long"
_NAMED = 5


@dataclass
class Recordings:
    """Utterances of a source, by their ids, and the ids of those that were left out, by the reason."""

    utterances: list[Utterance]
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, reason: str, utterance_id: str) -> None:
        """Note that an utterance does not come in."""
        self.left_out.setdefault(reason, []).append(utterance_id)

    def left_out_counts(self) -> dict[str, int]:
        """How many were left out, by the reason."""
        return {reason: len(names) for reason, names in sorted(self.left_out.items())}

    def left_out_sentence(self) -> str | None:
        """Which utterances were left out, the first of each reason by name; ``None`` where all are in."""
        parts = [
            f"{len(names)} {reason} ({', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''})"
            for reason, names in sorted(self.left_out.items())
        ]
        return f"left out: {'; '.join(parts)}" if parts else None


@dataclass
class AudioTally:
    """What the headers of the recordings say."""

    seconds: float = 0.0
    sample_rates: Counter[int] = field(default_factory=Counter)
    several_channels: int = 0
    """Recordings of more than one channel, which ``read_audio`` mixes down."""


def check_recordings(recordings: Recordings, maximum_seconds: float, source: str | Path) -> AudioTally:
    """Open every recording and leave out, by name, those without words, that cannot be read or are too long.

    Raises ``SpeechError`` where none is left.
    """
    tally = AudioTally()
    kept = []
    for utterance in tqdm(recordings.utterances, desc="checking", unit=" files", disable=None, leave=False):
        if not normalise(utterance.text):
            recordings.leave_out(NO_WORDS, utterance.utterance_id)
            continue
        try:
            facts = audio_facts(utterance.audio, maximum_seconds=float("inf"))
        except SpeechError:
            recordings.leave_out(UNREADABLE, utterance.utterance_id)
            continue
        if facts.seconds > maximum_seconds:
            recordings.leave_out(TOO_LONG, utterance.utterance_id)
            continue
        tally.seconds += facts.seconds
        tally.sample_rates[facts.sample_rate] += 1
        tally.several_channels += facts.channels > 1
        kept.append(utterance)
    recordings.utterances = kept
    if not kept:
        raise SpeechError(f"source {str(source)!r} has no utterance that can be used; {recordings.left_out_sentence()}")
    return tally


def existing_source(source: str | Path, what: str) -> Path:
    """The path of a source that is there; ``what`` says in the error what should be."""
    path = Path(source)
    if not path.exists():
        raise SpeechError(f"source {str(source)!r} does not exist; give {what}")
    return path


def check_names(chosen: Sequence[str], found: Iterable[str], setting: str, source: str | Path) -> None:
    """Raise ``SpeechError`` where a name that a setting chooses is not in the source."""
    known = sorted(set(found))
    missing = [name for name in chosen if name not in known]
    if missing:
        raise SpeechError(
            f"{setting} {missing!r} not in source {str(source)!r}; it has: {', '.join(known[:20]) or 'none'}"
        )


def recording_seconds(utterances: Iterable[Utterance], maximum_seconds: float) -> list[float]:
    """Seconds of each recording, by its header.

    Raises ``SpeechError`` that lists the recordings which are missing, empty, cut off, no audio or too long, as far as
    headers and last samples tell.
    """
    seconds, problems = [], []
    for utterance in utterances:
        try:
            seconds.append(audio_facts(utterance.audio, maximum_seconds=maximum_seconds).seconds)
        except SpeechError as error:
            problems.append(recording_problem(utterance, error))
    fail_with_recordings(problems)
    return seconds


def recording_problem(utterance: Utterance, error: SpeechError) -> str:
    """What is wrong with a recording, for ``fail_with_recordings``."""
    return f"utterance {utterance.utterance_id!r}: {error}"


def fail_with_recordings(problems: Sequence[str]) -> None:
    """``SpeechError`` that lists the recordings which cannot be used, where there are any."""
    if problems:
        raise SpeechError(problem_list(problems, "recordings cannot be used"))
