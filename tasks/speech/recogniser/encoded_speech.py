"""Speech as a recogniser's encoder gives it: computed once for a test set, decoded many times.

A safetensors file with one tensor (frames, dim) for each utterance, under its id. Its metadata holds the ids in
order, the recogniser's hash, the seconds of audio, and whether some of it is synthetic. It says what was spoken as
much as the recording does: such a file of private speech is private.
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

FORMAT = "palimpsest encoded speech 1"
_PREFIX = "utterance/"


@dataclass(frozen=True)
class EncodedSpeech:
    """The encoded utterances of a test set."""

    recogniser_hash: str
    """Of the recogniser that encoded them, which alone can decode them."""
    seconds: Mapping[str, float]
    """Seconds of audio by utterance id."""
    frame_seconds: float
    """Seconds that one frame stands for."""
    synthetic: bool
    """Whether some of it is synthesised speech."""
    tensors: Mapping[str, Tensor]
    """Frames (T, D) by utterance id, in the manifest's order; as they are stored, where they come from a file."""

    @property
    def utterance_ids(self) -> list[str]:
        """In the manifest's order."""
        return list(self.tensors)

    def frames(self, utterance_id: str) -> Tensor:
        """Encoded frames of an utterance, float32 (T, D)."""
        return self.tensors[utterance_id].float()

    def check_recogniser(self, recogniser_hash: str) -> None:
        """Raises ``SpeechError`` where another recogniser encoded this."""
        if recogniser_hash != self.recogniser_hash:
            raise SpeechError(
                f"the speech was encoded by the recogniser {self.recogniser_hash[:12]}, and this one is "
                f"{recogniser_hash[:12]}; give the same, or run 'palimpsest encode-speech' with this one"
            )


def write_encoded(path: str | Path, speech: EncodedSpeech, store: Literal["float32", "float16"] = "float16") -> None:
    """Write encoded utterances. Raises ``SpeechError`` where a frame is not finite."""
    from safetensors.torch import save

    kind = torch.float16 if store == "float16" else torch.float32
    tensors = {f"{_PREFIX}{name}": value.to(kind).contiguous() for name, value in speech.tensors.items()}
    for name, value in tensors.items():
        if not bool(torch.isfinite(value).all()):
            raise SpeechError(f"the encoding of {name.removeprefix(_PREFIX)!r} is not finite as {store}")
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
    """Read encoded utterances. Raises ``SpeechError`` where the file is missing, damaged or something else."""
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


def encode_utterances(
    recogniser: Recogniser,
    utterances: Sequence[Utterance],
    maximum_seconds: float,
    batch_seconds: float,
    *,
    streaming: bool = False,
) -> tuple[EncodedSpeech, float, Counter[str]]:
    """Encode recordings, longest first; ``streaming``: one by one, each as if it were being spoken.

    Returns the speech, the seconds that features and encoder took, without reading the files, and what was done to
    recordings: ``mixed_down``, ``resampled``. Utterances that are too short to be encoded have frames (0, D). Raises
    ``SpeechError`` that lists all that cannot be read or are too long.
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
                # Nothing comes of it any more, but the other damaged ones are to be known too.
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
    """Longest first, so that a lack of memory shows at once; about ``batch_seconds`` with padding in each."""
    ordered = sorted(utterances, key=lambda each: (-seconds[each.utterance_id], each.utterance_id))
    return list(
        batches_that_fit(ordered, lambda batch, _: seconds[batch[0].utterance_id] * (len(batch) + 1) <= batch_seconds)
    )
