"""Beam search for the transducer against torchaudio's ``RNNTBeamSearch``, on one thread.

The recogniser is the one that comes with the repository. The speech is synthetic: chat messages, by voices
that the recogniser was not trained on. Both sides search the same frames of the encoder. Ours takes all utterances at
once, torchaudio's one after the other, which is all that it can. It may write ten units at a frame, since its default
of 100 would cost it time. Word error rates are compared first. k2 and sherpa-onnx are not compared.
"""

from typing import Any

import numpy as np
import torch
from torchaudio.models import RNNTBeamSearch

from benchmarks.frame import speed
from benchmarks.texts import messages
from tasks.speech.audio.settings import SynthesisSettings
from tasks.speech.recogniser.recogniser import load_recogniser
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.synthesis.synthetic_corpus import speak_drawn
from tasks.speech.word_errors.word_errors import ALL, count_errors

BEAM, PEER_UNITS_A_FRAME = 5, 10


def run(small: bool) -> list[dict[str, Any]]:
    recogniser = load_recogniser("models/recogniser")
    model, blank = recogniser.model, recogniser.units.blank
    texts, encoded = speech(recogniser, 20 if small else 600)
    settings = SearchSettings(beam_width=BEAM, nbest=BEAM)

    class Encoded(torch.nn.Module):
        """The model with frames that are encoded already."""

        predict, join = model.predict, model.join

        def transcribe(self, frames: Any, lengths: Any) -> tuple[Any, Any]:
            return frames, lengths

    peer = RNNTBeamSearch(Encoded(), blank, step_max_tokens=PEER_UNITS_A_FRAME)

    @torch.inference_mode()
    def theirs() -> list[tuple[int, ...]]:
        best = [peer(frames, torch.tensor(len(frames)), BEAM)[0] for frames in encoded]
        return [tuple(units[1:]) for units, *_ in best]

    def ours() -> list[tuple[int, ...]]:
        return [hypotheses[0].units for hypotheses in beam_search(model, blank, encoded, settings)]

    def word_error_rate(found: list[tuple[int, ...]]) -> float:
        heard = {f"{number}": recogniser.units.decode(units) for number, units in enumerate(found)}
        counts = count_errors({f"{number}": text for number, text in enumerate(texts)}, heard).of(ALL)
        return float(counts.errors.sum() / counts.units.sum())

    own_rate, peer_rate = word_error_rate(ours()), word_error_rate(theirs())
    if own_rate > 1.005 * peer_rate:
        raise AssertionError(f"our word error rate is {own_rate:.4f}, that of torchaudio's search {peer_rate:.4f}")
    name = f"beam search of width {BEAM} against torchaudio's; word error rates {own_rate:.4f} and {peer_rate:.4f}"
    return [speed(name, sum(map(len, encoded)), "frames/s", ours, theirs)]


def speech(recogniser: Any, utterances: int) -> tuple[list[str], list[Any]]:
    """Messages of 5 to 12 words, and the encoder's frames of each (T, D)."""
    settings = SynthesisSettings(voice_set="test")
    generator = np.random.default_rng(1)
    short = [line.lower() for line in messages() if 5 <= len(line.split()) <= 12 and line.replace(" ", "").isalpha()]
    texts, features = short[:: len(short) // utterances][:utterances], []
    for text in texts:
        features.append(recogniser.features(speak_drawn(text, None, settings, generator)[0]))
    return texts, recogniser.encode(features)
