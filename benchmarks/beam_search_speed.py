"""Beam search for the transducer: against torchaudio's ``RNNTBeamSearch``, and with a word-level language model.

The recogniser is the one that comes with the repository, the speech synthetic: sentences of frequent words, by voices
that the recogniser was not trained on, as many as the demo's test set has. The language model is a Transformer of
20,000 words with random weights. Time is processor time on one thread, in alternating turns, of the same utterances;
ours takes them all at once, torchaudio's one after the other, which is all it can. It may write ten units at a frame,
where its default of 100 would cost it time.
"""

from typing import Any

from benchmarks.turns import compared, row

RECOGNISER = "models/recogniser"
WORDS = 20_000
UTTERANCES = 1200
BEAM = 5
PEER_UNITS_A_FRAME = 10
ROUNDS = 3
SPOKEN = (
    "the of and to in a is that for it was on are with as be at this have from or not by one had but what all were "
    "when we there can an your which their said if do will each about how up out them then she many some so these "
    "would other into has more her two like him see time could no make than first been its who now people my made "
    "over did down only way find use may water long little very after words called just where most know"
).split()


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    import torch
    from torchaudio.models import RNNTBeamSearch

    from tasks.speech.fusion.scorers import weighted
    from tasks.speech.fusion.unit_scorers import SpelledUnits, WordCounts
    from tasks.speech.recogniser.folder import load_recogniser
    from tasks.speech.rescoring.settings import SearchSettings
    from tasks.speech.rescoring.weight_grid import LM, WORD_COUNT
    from tasks.speech.search.beam_search import beam_search

    recogniser = load_recogniser(RECOGNISER)
    model, blank = recogniser.model, recogniser.units.blank
    texts, encoded = _speech(recogniser)
    settings = SearchSettings(beam_width=BEAM, nbest=BEAM)
    units = SpelledUnits(recogniser.units)
    fusion = weighted({WORD_COUNT: WordCounts(units), LM: _look_ahead(units)}, {WORD_COUNT: 1.0, LM: 0.3})
    peer = RNNTBeamSearch(model, blank, step_max_tokens=PEER_UNITS_A_FRAME)

    @torch.inference_mode()
    def theirs() -> list[tuple[int, ...]]:
        found = [peer._search(frames[None], None, BEAM)[0] for frames in encoded]
        return [tuple(units[1:]) for units, *_ in found]

    def ours() -> list[tuple[int, ...]]:
        return [hypotheses[0].units for hypotheses in beam_search(model, blank, encoded, settings)]

    def fused() -> Any:
        return beam_search(model, blank, encoded, settings, fusion)

    best = ours()
    own_rate, peer_rate = (_word_error_rate(recogniser, found, texts) for found in (best, theirs()))
    fused()
    frames = sum(map(len, encoded))
    own_seconds, peer_seconds, ratio = compared(ROUNDS, ours, theirs)
    alone_seconds, fused_seconds, slower = compared(ROUNDS, ours, fused)
    per_frame = "microseconds a frame"
    return [
        row(
            f"beam search against torchaudio's, beam {BEAM}, {sum(map(len, best)) / frames:.2f} units a frame",
            1e6 * own_seconds / frames,
            1e6 * peer_seconds / frames,
            per_frame,
            round(ratio, 3),
            ">= 10.0",
            ratio >= 10,
        ),
        row(
            "beam search, word error rate beside torchaudio's",
            own_rate,
            peer_rate,
            "word errors a word",
            own_rate / peer_rate,
            "<= 1.005",
            own_rate <= 1.005 * peer_rate,
        ),
        row(
            f"beam search with a language model of {WORDS:,} words against without",
            1e6 * fused_seconds / frames,
            1e6 * alone_seconds / frames,
            per_frame,
            round(slower, 3),
            "<= 2.0",
            slower <= 2,
        ),
    ]


def _speech(recogniser: Any) -> tuple[list[str], list[Any]]:
    """Sentences of 5 to 12 words, and what the encoder makes of them spoken (frames, D)."""
    import numpy as np

    from tasks.speech.audio.settings import SynthesisSettings
    from tasks.speech.synthesis.synthetic_corpus import Synthesiser, draw_noise, draw_voices, synthesise

    settings = SynthesisSettings(voice_set="test", sample_rate=recogniser.settings.features.sample_rate)
    generator, synthesiser = np.random.default_rng(1), Synthesiser()
    texts, features = [], []
    for _ in range(UTTERANCES):
        texts.append(" ".join(generator.choice(SPOKEN, int(generator.integers(5, 13)))))
        (voice,) = draw_voices(settings, generator, synthesiser).values()
        noise = draw_noise(settings, generator)
        signal = synthesise(
            texts[-1], voice, noise, generator, sample_rate=settings.sample_rate, synthesiser=synthesiser
        )
        features.append(recogniser.features(signal))
    return texts, recogniser.encode(features)


def _word_error_rate(recogniser: Any, found: list[tuple[int, ...]], texts: list[str]) -> float:
    from tasks.speech.word_errors.word_errors import count_errors

    names = [f"{index:04d}" for index in range(len(texts))]
    heard = {name: recogniser.units.decode(units) for name, units in zip(names, found, strict=True)}
    counts = count_errors(dict(zip(names, texts, strict=True)), heard)
    return float(counts.errors.sum() / counts.words.sum())


def _look_ahead(units: Any) -> Any:
    """Look-ahead into a Transformer over the spoken words and others of letters."""
    import random

    from tasks.language_model.settings import ArchitectureSettings
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.transformer.next_words import TransformerNextWord
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
    from tasks.speech.fusion.word_lookahead import WordLookahead

    generator = random.Random(4)
    letters = "etaoinshrdlu"
    words = dict.fromkeys(SPOKEN)
    while len(words) < WORDS - len(SPECIAL_TOKENS):
        words["".join(generator.choices(letters, weights=range(12, 0, -1), k=generator.randint(1, 7)))] = None
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *words))
    model = TransformerLanguageModel(ArchitectureSettings(), len(vocabulary))
    model.initialise(5)
    return WordLookahead(TransformerNextWord(model, vocabulary), units)
