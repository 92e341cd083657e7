"""The lists of SMS-WSJ (Drude et al. 2019, arXiv 1910.13934): mixtures of two WSJ speakers in a room, and their parts.

Its ``sms_wsj.json`` holds, for each mixture, the two utterances, their words (Kaldi's) and the paths of all signals.
The paths are absolute, of the machine where the database was made; where such a file is not there, the same end of the
path is looked for below the folder of ``sms_wsj.json``.
"""

import json
import re
from pathlib import Path
from typing import Any

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance
from tasks.speech.audio.recordings import NO_RECORDING, Recordings, check_names, existing_source
from tasks.speech.audio.settings import SmsWsjSpeech

_SOUND = re.compile(r"<[^<>\s]*>")
"""Kaldi's marks such as ``<NOISE>``."""


def read_sms_wsj(settings: SmsWsjSpeech) -> Recordings:
    """The utterances of a list in the order of their ids.

    ``original_source`` gives each WSJ utterance once, under its own id; the other signals give two utterances a
    mixture, ``MIXTURE_0`` and ``MIXTURE_1``. Utterances whose file is not there are left out and counted. Raises
    ``SpeechError`` where the file is missing or is not SMS-WSJ's.
    """
    source = existing_source(settings.source, "the path of sms_wsj.json")
    path = source / "sms_wsj.json" if source.is_dir() else source
    datasets = _datasets(path)
    check_names([settings.dataset], datasets, "dataset", path)
    recordings = Recordings([], [path])
    seen = set()
    for mixture, example in sorted(datasets[settings.dataset].items()):
        for index, (audio, text, speaker) in enumerate(_speakers(path, mixture, example, settings.signal)):
            original = settings.signal == "original_source"
            name = Path(audio).stem.lower() if original else f"{mixture}_{index}"
            if name in seen:
                continue
            seen.add(name)
            found = _find(audio, path.parent)
            if found is None:
                recordings.leave_out(NO_RECORDING, name)
            else:
                words = " ".join(_SOUND.sub(" ", text).split())
                recordings.utterances.append(Utterance(name, found, words, speaker))
    recordings.utterances.sort(key=lambda utterance: utterance.utterance_id)
    return recordings


def _datasets(path: Path) -> dict[str, dict[str, Any]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpeechError(f"{str(path)!r} cannot be read as JSON ({type(error).__name__}); give sms_wsj.json") from None
    datasets = document.get("datasets") if isinstance(document, dict) else None
    if not isinstance(datasets, dict) or not all(isinstance(dataset, dict) for dataset in datasets.values()):
        raise SpeechError(
            f"{str(path)!r} has no 'datasets' of examples; give the sms_wsj.json that SMS-WSJ's make wrote"
        )
    return datasets


def _speakers(path: Path, mixture: str, example: Any, signal: str) -> list[tuple[str, str, str]]:
    """Audio, words and name of each speaker of a mixture."""
    try:
        audio, texts, speakers = example["audio_path"][signal], example["kaldi_transcription"], example["speaker_id"]
        complete = len(audio) == len(texts) == len(speakers) and not isinstance(audio, str)
    except (KeyError, TypeError):
        complete = False
    if not complete or not all(isinstance(value, str) for value in [*audio, *texts, *speakers]):
        raise SpeechError(
            f"{str(path)!r}: example {mixture!r} needs audio_path.{signal}, kaldi_transcription and speaker_id, each a "
            "list with a text for each speaker; make the database with its signals written, or choose another signal"
        )
    return list(zip(audio, texts, speakers, strict=True))


def _find(audio: str, folder: Path) -> Path | None:
    path = Path(audio)
    if path.is_file():
        return path.absolute()
    parts = path.parts[1:] if path.is_absolute() else path.parts
    for start in range(len(parts)):
        candidate = folder.joinpath(*parts[start:])
        if candidate.is_file():
            return candidate.absolute()
    return None
