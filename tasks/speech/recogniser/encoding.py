"""The encoder over many recordings, in batches of about equal lengths."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.errors import SpeechError
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import Utterance
from tasks.speech.audio.recording_lengths import fail_with_recordings, recording_problem, recording_seconds
from tasks.speech.recogniser.recogniser import Recogniser


@dataclass(frozen=True)
class EncodedUtterances:
    """What ``encode_utterances`` gives."""

    frames: dict[str, Tensor]
    """Encoded frames (T', D) by utterance id, in the order that was given."""
    seconds: dict[str, float]
    """Seconds of audio."""
    encode_seconds: float
    """Time of features and encoder, without reading the files."""
    without_frames: int
    """Utterances too short to be encoded; their tensors are (0, D)."""
    tally: Counter[str]
    """What was done to recordings: ``mixed_down``, ``resampled``."""


def encode_utterances(
    recogniser: Recogniser,
    utterances: Sequence[Utterance],
    maximum_seconds: float,
    batch_seconds: float,
    *,
    streaming: bool = False,
) -> EncodedUtterances:
    """Encode recordings, longest first; ``streaming``: one by one, each as if it were being spoken.

    Raises ``SpeechError`` that lists all that cannot be read or are too long.
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
    frames = {each.utterance_id: found[each.utterance_id] for each in utterances}
    return EncodedUtterances(frames, seconds, clock, sum(not len(each) for each in frames.values()), tally)


def _batches(utterances: Sequence[Utterance], seconds: dict[str, float], batch_seconds: float) -> list[list[Utterance]]:
    """Longest first, so that a lack of memory shows at once; about ``batch_seconds`` with padding in each."""
    ordered = sorted(utterances, key=lambda each: (-seconds[each.utterance_id], each.utterance_id))
    batches: list[list[Utterance]] = []
    for utterance in ordered:
        longest = seconds[batches[-1][0].utterance_id] if batches else 0.0
        if batches and longest * (len(batches[-1]) + 1) <= batch_seconds:
            batches[-1].append(utterance)
        else:
            batches.append([utterance])
    return batches
