"""Encoded speech with the references of its utterances, and word errors of hypotheses for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from tasks.errors import SpeechError
from tasks.speech.recogniser.encoded_speech import EncodedSpeech, read_encoded
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.recogniser.units import Units
from tasks.speech.word_errors.references import read_references
from tasks.speech.word_errors.word_errors import count_errors


@dataclass(frozen=True)
class TranscribedSpeech:
    """Encoded utterances, and references by utterance id; there may be references without an utterance."""

    encoded: EncodedSpeech
    references: Mapping[str, str]

    @property
    def frames(self) -> list[Tensor]:
        """Encoded frames (T, D) of each utterance."""
        return [self.encoded.frames(name) for name in self.encoded.utterance_ids]


def read_transcribed(encoded: str, manifest: str, recogniser: Recogniser) -> TranscribedSpeech:
    """Encoded speech and its references; ``SpeechError`` where they are not of the same utterances."""
    speech, references = read_encoded(encoded), read_references(manifest)
    speech.check_recogniser(recogniser.hash)
    foreign = [name for name in speech.utterance_ids if name not in references]
    if foreign:
        raise SpeechError(
            f"{len(foreign)} utterances of {encoded!r} have no reference in {manifest!r}, such as {foreign[0]!r}; give "
            "the manifest that was encoded"
        )
    return TranscribedSpeech(speech, references)


def errors_of_units(
    hypotheses: Sequence[tuple[int, tuple[int, ...]]], references: Sequence[str], units: Units
) -> list[int]:
    """Word errors of hypotheses in units, each with the index of its reference."""
    if not hypotheses:
        return []
    names = [f"{place:09d}" for place in range(len(hypotheses))]
    said = {name: references[index] for name, (index, _) in zip(names, hypotheses, strict=True)}
    heard = {name: units.decode(found) for name, (_, found) in zip(names, hypotheses, strict=True)}
    errors: list[int] = count_errors(said, heard).errors.tolist()
    return errors
