"""Speech as encoded by a recogniser: computed once for a test set, decoded many times.

The file is a safetensors file with one tensor (frames, dim) for each utterance, under its id. Its metadata holds the
ids in order, the recogniser's hash, the seconds of audio, and whether some of it is synthetic. It reveals the spoken
words as the recording does: encoded private speech is private.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from tasks.batches import batches_that_fit
from tasks.errors import SpeechError
from tasks.files.atomic_file import atomic_writer
from tasks.speech.audio.audio_file import AudioFacts, read_audio
from tasks.speech.audio.manifest import Utterance, recording_facts
from tasks.speech.recogniser.recogniser import Recogniser, as_float16
from tasks.speech.word_errors.references import read_references

_FORMAT = "palimpsest encoded speech 1"
_PREFIX = "utterance/"
_FACTS = ("seconds", "synthetic")
_BATCH_SECONDS = 60.0
"""Seconds of speech in a batch, about, with padding."""


@dataclass(frozen=True)
class EncodedSpeech:
    """The encoded utterances of a test set."""

    recogniser_hash: str
    """Hash of the recogniser that encoded the speech; only this recogniser can decode it."""
    seconds: Mapping[str, float]
    """Seconds of audio by utterance id."""
    synthetic: bool
    """Whether some of it is synthesised speech."""
    tensors: Mapping[str, Tensor]
    """Frames (T, D) by utterance id, in the manifest's order; from a file, in its stored type."""
    references: Mapping[str, str] = field(default_factory=dict)
    """References by utterance id, if they were read too; some may have no utterance."""

    @property
    def frames(self) -> list[Tensor]:
        """Encoded frames of each utterance, float32 (T, D)."""
        return [tensor.float() for tensor in self.tensors.values()]


def write_encoded(path: str | Path, speech: EncodedSpeech) -> None:
    """Write encoded utterances as float16."""
    from safetensors.torch import save

    tensors = {f"{_PREFIX}{name}": value for name, value in as_float16(speech.tensors).items()}
    document = {"format": _FORMAT, "recogniser": speech.recogniser_hash, "utterance_ids": list(speech.tensors)}
    document |= {name: getattr(speech, name) for name in _FACTS}
    with atomic_writer(path, private=True, binary=True) as stream:
        stream.write(save(tensors, metadata={"palimpsest": json.dumps(document)}))


def read_encoded(path: str | Path, recogniser: Recogniser) -> EncodedSpeech:
    """Read encoded utterances.

    Raises ``SpeechError`` if the file is missing, damaged or of another kind, or of another recogniser.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as stream:
            document = json.loads(stream.metadata()["palimpsest"])
            tensors = {name: stream.get_tensor(f"{_PREFIX}{name}") for name in document["utterance_ids"]}
    except (OSError, SafetensorError, ValueError, LookupError, TypeError):
        why = "is no encoded speech, or is damaged" if Path(path).is_file() else "does not exist"
        raise SpeechError(f"{str(path)!r} {why}; 'palimpsest encode-speech' makes it") from None
    if document["recogniser"] != recogniser.hash:
        raise SpeechError(
            f"the speech was encoded by the recogniser {document['recogniser'][:12]}, and this one is "
            f"{recogniser.hash[:12]}; give the same, or run 'palimpsest encode-speech' with this one"
        )
    return EncodedSpeech(recogniser.hash, tensors=tensors, **{name: document[name] for name in _FACTS})


def read_transcribed(encoded: str, manifest: str, recogniser: Recogniser) -> EncodedSpeech:
    """Encoded speech with its references; ``SpeechError`` if an utterance has no reference."""
    speech, references = read_encoded(encoded, recogniser), read_references(manifest)
    if foreign := [name for name in speech.tensors if name not in references]:
        raise SpeechError(
            f"{len(foreign)} utterances of {encoded!r} have no reference in {manifest!r}, such as {foreign[0]!r}; give "
            "the manifest that was encoded"
        )
    return replace(speech, references=references)


def encode_utterances(
    recogniser: Recogniser, utterances: Sequence[Utterance], maximum_seconds: float
) -> tuple[EncodedSpeech, float, list[AudioFacts]]:
    """Encode recordings, longest first.

    Returns the speech, the seconds for features and encoder without reading the files, and the facts of the files.
    Utterances that are too short have frames (0, D). Raises ``SpeechError`` that lists all
    recordings that are unreadable or too long, as far as headers and last samples show, or names a damaged one.
    """
    from tqdm import tqdm

    features = recogniser.settings.features
    facts = recording_facts(utterances, maximum_seconds)
    seconds = {each.utterance_id: of.seconds for each, of in zip(utterances, facts, strict=True)}
    found = dict.fromkeys(seconds, torch.zeros(0, recogniser.settings.architecture.encoding))
    clock = 0.0
    # The longest first, so that a lack of memory shows at once.
    ordered = sorted(utterances, key=lambda each: (-seconds[each.utterance_id], each.utterance_id))
    with tqdm(total=len(utterances), desc="encode-speech", unit="utterance", disable=None, leave=False) as bar:
        for batch in batches_that_fit(
            ordered, lambda batch, _: seconds[batch[0].utterance_id] * (len(batch) + 1) <= _BATCH_SECONDS
        ):
            signals = {}
            for each in batch:
                signal = read_audio(each.audio, features.sample_rate, maximum_seconds=maximum_seconds)
                if len(signal) > features.window_samples:
                    signals[each.utterance_id] = signal
            if signals:
                started = time.perf_counter()
                encoded = recogniser.encode(list(map(recogniser.features, signals.values())))
                clock += time.perf_counter() - started
                found |= dict(zip(signals, encoded, strict=True))
            bar.update(len(batch))
    synthetic = any(utterance.synthetic for utterance in utterances)
    return EncodedSpeech(recogniser.hash, seconds, synthetic, found), clock, facts
