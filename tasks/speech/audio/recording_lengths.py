"""How long recordings are, with all of those that cannot be used named at once."""

from collections.abc import Iterable, Sequence

from tasks.errors import SpeechError
from tasks.speech.audio.audio_file import audio_facts
from tasks.speech.audio.manifest import Utterance
from tasks.speech.problem_list import problem_list


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
