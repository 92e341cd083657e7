"""LibriSpeech as published (Panayotov et al. 2015).

``PART/SPEAKER/CHAPTER/SPEAKER-CHAPTER.trans.txt`` has a line for each utterance, and its FLAC file lies beside it.
"""

from pathlib import Path

from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance
from tasks.speech.audio.recordings import (
    DUPLICATE,
    NO_RECORDING,
    NO_TRANSCRIPT,
    Recordings,
    check_names,
    existing_source,
)
from tasks.speech.audio.settings import LibriSpeech

_TRANSCRIPTS = "*.trans.txt"


def read_librispeech(settings: LibriSpeech) -> Recordings:
    """The utterances of the chosen parts in the order of their ids; the speaker is the number that readers have.

    A line without its recording and a recording without its line are left out and counted. Raises ``SpeechError``
    where the folder has no transcripts, no such part, or a line that is no ``ID WORDS``.
    """
    source = existing_source(settings.source, "the folder that LibriSpeech's archives were unpacked into")
    transcripts = sorted(source.rglob(_TRANSCRIPTS))
    check_names(settings.parts, (_part(path) for path in transcripts), "parts", source)
    if settings.parts:
        transcripts = [path for path in transcripts if _part(path) in settings.parts]
    if not transcripts:
        raise SpeechError(f"source {str(source)!r} has no {_TRANSCRIPTS}; name the folder that holds test-clean or so")
    recordings = Recordings([], transcripts)
    seen: set[str] = set()
    for path in transcripts:
        listed = set()
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            name, _, text = line.strip().partition(" ")
            if name.count("-") != 2:
                raise SpeechError(
                    f"{str(path)!r}: line {number} is no utterance; a line is 'SPEAKER-CHAPTER-NUMBER WORDS'"
                )
            listed.add(name)
            audio = path.parent / f"{name}.flac"
            if name in seen:
                recordings.leave_out(DUPLICATE, name)
            elif not audio.is_file():
                recordings.leave_out(NO_RECORDING, name)
            else:
                recordings.utterances.append(Utterance(name, audio.absolute(), text, name.split("-")[0]))
            seen.add(name)
        for audio in sorted(path.parent.glob("*.flac")):
            if audio.stem not in listed:
                recordings.leave_out(NO_TRANSCRIPT, audio.stem)
    recordings.utterances.sort(key=lambda utterance: utterance.utterance_id)
    return recordings


def _part(transcript: Path) -> str:
    """The folder above speaker and chapter: ``test-clean``."""
    return transcript.absolute().parents[2].name
