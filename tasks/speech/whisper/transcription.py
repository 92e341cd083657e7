"""Transcription of the recordings of a manifest into n-best lists."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from tqdm import tqdm

from tasks.language_model.normalisation import normalise
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import Utterance, recording_seconds
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis
from tasks.speech.rescoring.settings import WhisperSettings
from tasks.speech.whisper.recogniser import SAMPLE_RATE, Search, WhisperRecogniser, beam_search, has_digits

_FRAME_SECONDS = 0.02
_SMOOTHED_FRAMES = 15
"""Frames over which loudness is averaged: a pause between words is longer than the closure of a stop."""
_SEARCHED_SHARE = 1 / 3
"""The last part of a window that is searched for the quietest place."""


def windows_of(samples: torch.Tensor, longest: int, sample_rate: int) -> list[torch.Tensor]:
    """The recording (samples,) in pieces of at most ``longest`` samples, without overlap; itself if it is no longer.

    Each cut is at the quietest 0.3 s in the last third of the next window.
    """
    parts = []
    while len(samples) > longest:
        cut = _quietest(samples[:longest], sample_rate)
        parts.append(samples[:cut])
        samples = samples[cut:]
    return [*parts, samples]


def _quietest(samples: torch.Tensor, sample_rate: int) -> int:
    """Position of the quietest place in the last part of the samples."""
    frame = max(1, round(_FRAME_SECONDS * sample_rate))
    begin = int(len(samples) * (1 - _SEARCHED_SHARE))
    searched = samples[begin : begin + (len(samples) - begin) // frame * frame]
    power = searched.reshape(-1, frame).square().mean(1)  # (frames,)
    width = min(_SMOOTHED_FRAMES, len(power))
    smooth = torch.nn.functional.avg_pool1d(power[None, None], width, stride=1)[0, 0]
    return begin + (int(smooth.argmin()) + width // 2) * frame


_SCORE_DIGITS = 4
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Col|Gen|Lt|Jr|Sr)\.", re.IGNORECASE)
"""Titles that Whisper abbreviates and that transcripts often spell out."""


@dataclass
class Transcripts:
    """The lists in the manifest's order, and facts for the report."""

    lists: list[NbestList] = field(default_factory=list)
    audio_seconds: float = 0.0
    decode_seconds: float = 0.0
    """Wall time of features, encoder and search."""
    windowed: list[str] = field(default_factory=list)
    """Ids of the utterances that were longer than one window."""
    unfinished: list[str] = field(default_factory=list)
    """Ids of utterances of which every hypothesis reached the limit of pieces before its end."""
    tally: Counter[str] = field(default_factory=Counter)
    """Changes to recordings (``read_audio``)."""

    def counts(self) -> dict[str, int]:
        """Texts that may not be spelled as the references are; digits include signs that are read aloud."""
        best = [one.best.text for one in self.lists if one.hypotheses]
        return {
            "best_with_digits": sum(map(has_digits, best)),
            "references_with_digits": sum(has_digits(one.reference) for one in self.lists),
            "abbreviated_titles": sum(len(_ABBREVIATION.findall(text)) for text in best),
        }


def transcribe(
    recogniser: WhisperRecogniser, utterances: Sequence[Utterance], settings: WhisperSettings
) -> Transcripts:
    """Decode all recordings.

    Before decoding, raises ``SpeechError`` that lists unreadable or too long recordings, as far as headers show. Raises
    ``ParameterError`` for a language that the model does not have.
    """
    search = recogniser.search(settings)
    limit = settings.maximum_seconds
    seconds = recording_seconds(utterances, limit)
    transcripts = Transcripts(audio_seconds=sum(seconds))
    started = time.perf_counter()
    with tqdm(total=round(sum(seconds)), unit=" s of speech", desc="decoding", disable=None, leave=False) as bar:
        for utterance, length in zip(utterances, seconds, strict=True):
            samples = read_audio(utterance.audio, SAMPLE_RATE, maximum_seconds=limit, tally=transcripts.tally)
            joined, finished, windows = hypotheses_of(recogniser, samples, search, settings.beam_width)
            if windows > 1:
                transcripts.windowed.append(utterance.utterance_id)
            if not finished:
                transcripts.unfinished.append(utterance.utterance_id)
            merged = merge_spellings(joined)[: settings.nbest]
            rounded = tuple(ScoredHypothesis(one.text, round(one.score, _SCORE_DIGITS)) for one in merged)
            transcripts.lists.append(NbestList(utterance.utterance_id, utterance.text, rounded))
            bar.update(round(length))
    transcripts.decode_seconds = time.perf_counter() - started
    return transcripts


def hypotheses_of(
    recogniser: WhisperRecogniser, samples: torch.Tensor, search: Search, at_most: int
) -> tuple[list[ScoredHypothesis], bool, int]:
    """Hypotheses of a recording (samples,), best first, whether all of them ended, and its number of windows."""
    joined, finished = [ScoredHypothesis("", 0.0)], True
    windows = windows_of(samples, recogniser.longest, SAMPLE_RATE)
    for window in windows:
        found = beam_search(recogniser.model, recogniser.encode(window), *search)
        finished &= all(one.finished for one in found)
        texts = merge_spellings(ScoredHypothesis(recogniser.text_of(one.pieces), one.score) for one in found)
        joined = join_windows(joined, texts, at_most)
    return joined, finished, len(windows)


def join_windows(
    before: Sequence[ScoredHypothesis], after: Sequence[ScoredHypothesis], at_most: int
) -> list[ScoredHypothesis]:
    """The best hypotheses of two successive parts of a recording: texts are concatenated, scores added."""
    pairs = [ScoredHypothesis(f"{a.text} {b.text}".strip(), a.score + b.score) for a in before for b in after]
    return sorted(pairs, key=lambda hypothesis: -hypothesis.score)[:at_most]


def merge_spellings(hypotheses: Iterable[ScoredHypothesis]) -> list[ScoredHypothesis]:
    """One hypothesis for each sequence of words, with its best score; best first.

    Whisper writes case and punctuation, and many hypotheses of a beam differ in these only.
    """
    best: dict[tuple[str, ...], ScoredHypothesis] = {}
    for hypothesis in sorted(hypotheses, key=lambda one: -one.score):
        best.setdefault(tuple(normalise(hypothesis.text)), hypothesis)
    return list(best.values())
