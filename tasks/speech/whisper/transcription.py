"""From the recordings of a manifest to n-best lists."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from tqdm import tqdm

from tasks.language_model.normalisation import normalise
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import Utterance, recording_seconds
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis
from tasks.speech.rescoring.settings import WhisperSettings
from tasks.speech.whisper.beam_search import PieceHypothesis, SearchSpace, beam_search
from tasks.speech.whisper.recogniser import SAMPLE_RATE, WhisperRecogniser, has_digits

_FRAME_SECONDS = 0.02
_SMOOTHED_FRAMES = 15
"""Frames whose mean loudness counts: a pause between words is longer than the closure of a stop."""
_SEARCHED_SHARE = 1 / 3
"""The last part of a window that is searched for the quietest place."""


def windows_of(samples: torch.Tensor, longest: int, sample_rate: int) -> list[torch.Tensor]:
    """The recording (samples,) in pieces of at most ``longest`` samples, without overlap; itself if it is no longer.

    Each cut is at the quietest 0.3 s of the last third of what can still be read.
    """
    parts = []
    while len(samples) > longest:
        cut = _quietest(samples[:longest], sample_rate)
        parts.append(samples[:cut])
        samples = samples[cut:]
    return [*parts, samples]


def _quietest(samples: torch.Tensor, sample_rate: int) -> int:
    """Where in the last part of the samples it is quietest."""
    frame = max(1, round(_FRAME_SECONDS * sample_rate))
    begin = int(len(samples) * (1 - _SEARCHED_SHARE))
    searched = samples[begin : begin + (len(samples) - begin) // frame * frame]
    power = searched.reshape(-1, frame).square().mean(1)  # (frames,)
    width = min(_SMOOTHED_FRAMES, len(power))
    smooth = torch.nn.functional.avg_pool1d(power[None, None], width, stride=1)[0, 0]
    return begin + (int(smooth.argmin()) + width // 2) * frame


_SCORE_DIGITS = 4
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Col|Gen|Lt|Jr|Sr)\.", re.IGNORECASE)
"""What Whisper abbreviates and people who write down speech often spell out."""


@dataclass
class Transcripts:
    """The lists in the manifest's order, and what there is to say of them."""

    lists: list[NbestList] = field(default_factory=list)
    audio_seconds: float = 0.0
    decode_seconds: float = 0.0
    """Wall time of features, encoder and search."""
    windowed: list[str] = field(default_factory=list)
    """Ids of the utterances that were longer than one window."""
    unfinished: list[str] = field(default_factory=list)
    """Ids of those whose every hypothesis reached the limit of pieces before its end."""
    tally: Counter[str] = field(default_factory=Counter)
    """What was done to recordings (``read_audio``)."""

    @property
    def with_digits(self) -> int:
        """Best hypotheses with digits or signs that are read aloud."""
        return sum(1 for one in self.lists if one.hypotheses and has_digits(one.best.text))

    @property
    def references_with_digits(self) -> int:
        """References with such."""
        return sum(has_digits(one.reference) for one in self.lists)

    @property
    def abbreviations(self) -> int:
        """Abbreviated titles in the best hypotheses, each an error where the reference spells it out."""
        return sum(len(_ABBREVIATION.findall(one.best.text)) for one in self.lists if one.hypotheses)


def transcribe(
    recogniser: WhisperRecogniser, utterances: Sequence[Utterance], settings: WhisperSettings
) -> Transcripts:
    """Decode all recordings, windows of similar length together.

    Raises ``SpeechError`` that lists the recordings which cannot be read or are too long before anything is decoded,
    as far as their headers tell, and ``ParameterError`` for a language that the model does not know.
    """
    space = recogniser.search_space(settings.language, no_digits=settings.no_digits)
    seconds = recording_seconds(utterances, settings.maximum_seconds)
    transcripts = Transcripts(audio_seconds=sum(seconds))
    started = time.perf_counter()
    found: dict[int, list[list[PieceHypothesis]]] = {}
    order = sorted(range(len(utterances)), key=lambda place: (-seconds[place], place))
    with tqdm(total=round(sum(seconds)), unit=" s of speech", desc="decoding", disable=None, leave=False) as bar:
        for begin in range(0, len(order), settings.batch_size):
            places: list[int] = []
            windows: list[torch.Tensor] = []
            for place in order[begin : begin + settings.batch_size]:
                parts = _windows(recogniser, utterances[place], settings, transcripts)
                windows += parts
                places += [place] * len(parts)
            for place, hypotheses in zip(places, _decoded(recogniser, windows, space, settings), strict=True):
                found.setdefault(place, []).append(hypotheses)
            bar.update(round(sum(seconds[place] for place in dict.fromkeys(places))))
    transcripts.decode_seconds = time.perf_counter() - started
    for place, utterance in enumerate(utterances):
        if any(not one.finished for of_window in found[place] for one in of_window):
            transcripts.unfinished.append(utterance.utterance_id)
        texts = [
            [ScoredHypothesis(recogniser.pieces.decode(one.pieces), one.score) for one in of_window]
            for of_window in found[place]
        ]
        merged = merge_spellings(join_windows(texts, settings.beam_width))[: settings.nbest]
        transcripts.lists.append(NbestList(utterance.utterance_id, utterance.text, tuple(merged)))
    return transcripts


def _windows(
    recogniser: WhisperRecogniser, utterance: Utterance, settings: WhisperSettings, transcripts: Transcripts
) -> list[torch.Tensor]:
    """The recording as windows (samples,)."""
    samples = read_audio(
        utterance.audio, SAMPLE_RATE, maximum_seconds=settings.maximum_seconds, tally=transcripts.tally
    )
    parts = windows_of(samples, recogniser.longest, SAMPLE_RATE)
    if len(parts) > 1:
        transcripts.windowed.append(utterance.utterance_id)
    return parts


def _decoded(
    recogniser: WhisperRecogniser, windows: Sequence[torch.Tensor], space: SearchSpace, settings: WhisperSettings
) -> Iterator[list[PieceHypothesis]]:
    room = int(recogniser.model.config.max_target_positions) - len(space.prompt)
    for begin in range(0, len(windows), settings.batch_size):
        yield from beam_search(
            recogniser.model,
            recogniser.encode(windows[begin : begin + settings.batch_size]),
            space,
            settings.beam_width,
            min(settings.maximum_pieces, room),
            settings.length_penalty,
            recogniser.words_of,
        )


def join_windows(windows: Sequence[Sequence[ScoredHypothesis]], at_most: int) -> list[ScoredHypothesis]:
    """The best hypotheses of a whole recording from those of its windows: texts one behind the other, scores added."""
    joined = list(windows[0])
    for following in windows[1:]:
        pairs = [
            ScoredHypothesis(f"{before.text} {behind.text}".strip(), before.score + behind.score)
            for before in joined
            for behind in following
        ]
        joined = sorted(pairs, key=lambda hypothesis: -hypothesis.score)[:at_most]
    return joined


def merge_spellings(hypotheses: Iterable[ScoredHypothesis]) -> list[ScoredHypothesis]:
    """One hypothesis for each sequence of words: that with the best score, the best first.

    Within a window the search has seen to it; windows can be joined to the same words in several ways.
    """
    best: dict[tuple[str, ...], ScoredHypothesis] = {}
    for hypothesis in sorted(hypotheses, key=lambda one: -one.score):
        best.setdefault(tuple(normalise(hypothesis.text)), hypothesis)
    return [ScoredHypothesis(one.text, round(one.score, _SCORE_DIGITS)) for one in best.values()]
