"""Beam search for the transducer against torchaudio's ``RNNTBeamSearch``, on one thread.

The recogniser is the one that comes with the repository. The speech is synthetic: sentences of frequent words, by
voices that the recogniser was not trained on. Both sides search the same frames of the encoder. Ours takes all
utterances at once, torchaudio's one after the other, which is all that it can. It may write ten units at a frame, since
its default of 100 would cost it time. Word error rates are compared first. k2 and sherpa-onnx are not compared.
"""

from typing import Any

import numpy as np
import torch
from torchaudio.models import RNNTBeamSearch

from benchmarks.frame import speed
from tasks.speech.audio.settings import SynthesisSettings
from tasks.speech.recogniser.folder import load_recogniser
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search
from tasks.speech.synthesis.synthetic_corpus import Synthesiser, draw_noise, draw_voices, synthesise
from tasks.speech.word_errors.word_errors import ALL, count_errors

RECOGNISER = "models/recogniser"
BEAM, PEER_UNITS_A_FRAME = 5, 10
SPOKEN = (
    "the of and to in a is that for it was on are with as be at this have from or not by one had but what all were "
    "when we there can an your which their said if do will each about how up out them then she many some so these "
    "would other into has more her two like him see time could no make than first been its who now people my made "
    "over did down only way find use may water long little very after words called just where most know"
).split()


def run(small: bool) -> list[dict[str, Any]]:
    recogniser = load_recogniser(RECOGNISER)
    model, blank = recogniser.model, recogniser.units.blank
    texts, encoded = _speech(recogniser, 20 if small else 600)
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

    own_rate, peer_rate = (_word_error_rate(recogniser, found, texts) for found in (ours(), theirs()))
    if own_rate > 1.005 * peer_rate:
        raise AssertionError(f"our word error rate is {own_rate:.4f}, that of torchaudio's search {peer_rate:.4f}")
    name = f"beam search of width {BEAM} against torchaudio's; word error rates {own_rate:.4f} and {peer_rate:.4f}"
    return [speed(name, sum(map(len, encoded)), "frames/s", ours, theirs)]


def _speech(recogniser: Any, utterances: int) -> tuple[list[str], list[Any]]:
    """Sentences of 5 to 12 words, and the encoder's frames of each (T, D)."""
    settings = SynthesisSettings(voice_set="test", sample_rate=recogniser.settings.features.sample_rate)
    generator, synthesiser = np.random.default_rng(1), Synthesiser()
    texts, features = [], []
    for _ in range(utterances):
        texts.append(" ".join(generator.choice(SPOKEN, int(generator.integers(5, 13)))))
        (voice,) = draw_voices(settings, generator, synthesiser).values()
        noise, rate = draw_noise(settings, generator), settings.sample_rate
        signal = synthesise(texts[-1], voice, noise, generator, sample_rate=rate, synthesiser=synthesiser)
        features.append(recogniser.features(signal))
    return texts, recogniser.encode(features)


def _word_error_rate(recogniser: Any, found: list[tuple[int, ...]], texts: list[str]) -> float:
    names = [f"{index:04d}" for index in range(len(texts))]
    heard = {name: recogniser.units.decode(units) for name, units in zip(names, found, strict=True)}
    counts = count_errors(dict(zip(names, texts, strict=True)), heard).of(ALL)
    return float(counts.errors.sum() / counts.units.sum())
