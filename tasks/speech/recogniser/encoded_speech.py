"""Speech as encoded by a recogniser: computed once for a test set, decoded many times.

The file is a safetensors file with one tensor (frames, dim) for each utterance, under its id. Its metadata holds the
ids in order, the recogniser's hash, the seconds of audio, and whether some of it is synthetic. It reveals the spoken
words as the recording does: encoded private speech is private.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from tasks.batches import batches_that_fit
from tasks.errors import SpeechError
from tasks.files.atomic_file import atomic_writer
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import Utterance, fail_with_recordings, recording_problem, recording_seconds
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.word_errors.references import read_references

FORMAT = "palimpsest encoded speech 1"
_PREFIX = "utterance/"


@dataclass(frozen=True)
class EncodedSpeech:
    """The encoded utterances of a test set."""

    recogniser_hash: str
    """Hash of the recogniser that encoded the speech; only this recogniser can decode it."""
    seconds: Mapping[str, float]
    """Seconds of audio by utterance id."""
    frame_seconds: float
    """Seconds of speech in one frame."""
    synthetic: bool
    """Whether some of it is synthesised speech."""
    tensors: Mapping[str, Tensor]
    """Frames (T, D) by utterance id, in the manifest's order; from a file, in its stored type."""

    @property
    def utterance_ids(self) -> list[str]:
        """Utterance ids in the manifest's order."""
        return list(self.tensors)

    def frames(self, utterance_id: str) -> Tensor:
        """Encoded frames of an utterance, float32 (T, D)."""
        return self.tensors[utterance_id].float()

    def check_recogniser(self, recogniser_hash: str) -> None:
        """Raises ``SpeechError`` if another recogniser encoded this."""
        if recogniser_hash != self.recogniser_hash:
            raise SpeechError(
                f"the speech was encoded by the recogniser {self.recogniser_hash[:12]}, and this one is "
                f"{recogniser_hash[:12]}; give the same, or run 'palimpsest encode-speech' with this one"
            )


def write_encoded(path: str | Path, speech: EncodedSpeech, store: Literal["float32", "float16"] = "float16") -> None:
    """Write encoded utterances. Raises ``SpeechError`` if a frame is not finite."""
    from safetensors.torch import save

    kind = torch.float16 if store == "float16" else torch.float32
    tensors = {f"{_PREFIX}{name}": value.to(kind).contiguous() for name, value in speech.tensors.items()}
    for name, value in tensors.items():
        if not bool(torch.isfinite(value).all()):
            utterance = name.removeprefix(_PREFIX)
            raise SpeechError(f"the encoding of {utterance!r} is not finite as {store}; leave its recording out")
    document = {
        "format": FORMAT,
        "recogniser": speech.recogniser_hash,
        "utterance_ids": speech.utterance_ids,
        "seconds": dict(speech.seconds),
        "frame_seconds": speech.frame_seconds,
        "synthetic": speech.synthetic,
    }
    with atomic_writer(path, private=True, binary=True) as stream:
        stream.write(save(tensors, metadata={"palimpsest": json.dumps(document)}))


def read_encoded(path: str | Path) -> EncodedSpeech:
    """Read encoded utterances. Raises ``SpeechError`` if the file is missing, damaged or of another kind."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise SpeechError(f"encoded speech {str(path)!r} does not exist; 'palimpsest encode-speech' makes it")
    try:
        with safe_open(str(path), framework="pt") as stream:
            document = json.loads((stream.metadata() or {}).get("palimpsest", "{}"))
            if document.get("format") != FORMAT:
                raise SpeechError(f"{str(path)!r} is no encoded speech; 'palimpsest encode-speech' makes it")
            tensors = {name: stream.get_tensor(f"{_PREFIX}{name}") for name in document["utterance_ids"]}
    except (SafetensorError, ValueError):
        raise SpeechError(f"encoded speech {str(path)!r} is damaged; run 'palimpsest encode-speech' again") from None
    return EncodedSpeech(
        recogniser_hash=document["recogniser"],
        seconds=document["seconds"],
        frame_seconds=document["frame_seconds"],
        synthetic=document["synthetic"],
        tensors=tensors,
    )


@dataclass(frozen=True)
class TranscribedSpeech:
    """Encoded utterances, and references by utterance id; some references may have no utterance."""

    encoded: EncodedSpeech
    references: Mapping[str, str]

    @property
    def frames(self) -> list[Tensor]:
        """Encoded frames (T, D) of each utterance."""
        return [self.encoded.frames(name) for name in self.encoded.utterance_ids]


def read_transcribed(encoded: str, manifest: str, recogniser: Recogniser) -> TranscribedSpeech:
    """Encoded speech and its references; ``SpeechError`` if an utterance has no reference."""
    speech, references = read_encoded(encoded), read_references(manifest)
    speech.check_recogniser(recogniser.hash)
    foreign = [name for name in speech.utterance_ids if name not in references]
    if foreign:
        raise SpeechError(
            f"{len(foreign)} utterances of {encoded!r} have no reference in {manifest!r}, such as {foreign[0]!r}; give "
            "the manifest that was encoded"
        )
    return TranscribedSpeech(speech, references)


def encode_utterances(
    recogniser: Recogniser,
    utterances: Sequence[Utterance],
    maximum_seconds: float,
    batch_seconds: float,
    *,
    streaming: bool = False,
) -> tuple[EncodedSpeech, float, Counter[str]]:
    """Encode recordings, longest first; ``streaming``: one by one, segment by segment as in live speech.

    Returns the speech, the seconds for features and encoder without reading the files, and counts of changes to
    recordings: ``mixed_down``, ``resampled``. Utterances that are too short have frames (0, D). Raises ``SpeechError``
    that lists all recordings that are unreadable or too long.
    """
    from tqdm import tqdm

    rate, window = recogniser.settings.features.sample_rate, recogniser.settings.features.window_samples
    lengths = recording_seconds(utterances, maximum_seconds)
    seconds = {each.utterance_id: length for each, length in zip(utterances, lengths, strict=True)}
    nothing = torch.zeros(0, recogniser.settings.architecture.encoding)
    found: dict[str, Tensor] = {}
    tally: Counter[str] = Counter()
    problems: list[str] = []
    clock = 0.0
    encode = recogniser.encode_streaming if streaming else recogniser.encode
    with tqdm(total=len(utterances), desc="encode-speech", unit="utterance", disable=None, leave=False) as bar:
        for batch in _batches(utterances, seconds, batch_seconds):
            signals = []
            for each in batch:
                try:
                    signals.append(read_audio(each.audio, rate, maximum_seconds=maximum_seconds, tally=tally))
                except SpeechError as error:
                    problems.append(recording_problem(each, error))
            if problems:
                # The run will fail, but all other damaged recordings must be reported too.
                bar.update(len(batch))
                continue
            started = time.perf_counter()
            long_enough = [row for row, signal in enumerate(signals) if len(signal) > window]
            features = [recogniser.features(signals[row]) for row in long_enough]
            encoded = encode(features) if features else []
            clock += time.perf_counter() - started
            found |= {each.utterance_id: nothing for each in batch}
            found |= {batch[row].utterance_id: frames for row, frames in zip(long_enough, encoded, strict=True)}
            bar.update(len(batch))
    fail_with_recordings(problems)
    speech = EncodedSpeech(
        recogniser_hash=recogniser.hash,
        seconds=seconds,
        frame_seconds=recogniser.frame_seconds,
        synthetic=any(utterance.synthetic for utterance in utterances),
        tensors={name: found[name] for name in seconds},
    )
    return speech, clock, tally


def _batches(utterances: Sequence[Utterance], seconds: dict[str, float], batch_seconds: float) -> list[list[Utterance]]:
    """Batches of about ``batch_seconds`` with padding, longest first, so that a lack of memory shows at once."""
    ordered = sorted(utterances, key=lambda each: (-seconds[each.utterance_id], each.utterance_id))
    return list(
        batches_that_fit(ordered, lambda batch, _: seconds[batch[0].utterance_id] * (len(batch) + 1) <= batch_seconds)
    )
