"""Beam search for the transducer: against torchaudio's ``RNNTBeamSearch``, and with a word-level language model.

The network has the default recogniser's size; its predictor and joiner are trained here for a minute, since untrained
ones emit units at every frame. Frames are codes of units in noise. Words mean nothing there, so the best units of each
utterance are compared in place of word error rates. The language model is a Transformer of 20,000 words with random
weights. Time is processor time on one thread, in alternating turns; torchaudio decodes a part of the utterances, since
it takes each by itself, and time is by frame.
"""

from typing import Any

from benchmarks.turns import compared, row

UNITS, WORDS = 128, 20_000
UTTERANCES, PEER_UTTERANCES = 300, 20
BEAM = 5
ROUNDS = 3
TRAINING_STEPS = 250


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    import torch
    from torchaudio.models import RNNTBeamSearch

    from tasks.speech.fusion.shallow_fusion import FusionWeights, ShallowFusion
    from tasks.speech.search.beam_search import beam_search
    from tasks.speech.search.settings import SearchSettings

    model, encoded = _recogniser(), _speech()
    settings = SearchSettings(beam_width=BEAM, nbest=BEAM)
    units, lookahead = _language_model()
    fusion = ShallowFusion(FusionWeights(0.3, 1.0), units, lookahead)
    peer = RNNTBeamSearch(model, UNITS)

    @torch.inference_mode()
    def theirs() -> list[Any]:
        return [peer._search(frames[None], None, BEAM)[0] for frames in encoded[:PEER_UTTERANCES]]

    def ours() -> list[Any]:
        return [hypotheses[0] for hypotheses in beam_search(model, UNITS, encoded, settings)]

    def fused() -> list[Any]:
        return beam_search(model, UNITS, encoded, settings, fusion)

    best = ours()
    same = sum(tuple(found[0][1:]) == hypothesis.units for found, hypothesis in zip(theirs(), best, strict=False))
    fused()
    frames, peer_frames = sum(map(len, encoded)), sum(map(len, encoded[:PEER_UTTERANCES]))
    own_seconds, peer_seconds, ratio = compared(ROUNDS, ours, theirs)
    ratio *= frames / peer_frames
    alone_seconds, fused_seconds, slower = compared(ROUNDS, ours, fused)
    per_frame = "microseconds a frame"
    return [
        row(
            f"beam search against torchaudio's, beam {BEAM}, {_units_a_frame(best, frames):.2f} units a frame",
            1e6 * own_seconds / frames,
            1e6 * peer_seconds / peer_frames,
            per_frame,
            round(ratio, 3),
            ">= 10.0",
            ratio >= 10,
        ),
        row(
            "beam search, utterances with torchaudio's best units",
            same,
            PEER_UTTERANCES,
            "utterances",
            same / PEER_UTTERANCES,
            ">= 0.95",
            same >= 0.95 * PEER_UTTERANCES,
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


def _units_a_frame(best: list[Any], frames: int) -> float:
    return sum(len(hypothesis.units) for hypothesis in best) / frames


def _recogniser() -> Any:
    """The default recogniser's predictor and joiner, trained for a minute on codes of units in noise."""
    import torch

    from tasks.speech.recogniser.model import make_model
    from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
    from tasks.speech.transducer_loss.loss import transducer_loss

    model = make_model(RecogniserArchitecture(), FeatureSettings(), UNITS + 1, seed=1)
    trained = [*model.predictor.parameters(), *model.joiner.parameters()]
    optimiser = torch.optim.AdamW(trained, lr=2e-3)
    generator = torch.Generator().manual_seed(2)
    for _ in range(TRAINING_STEPS):
        units, frames = zip(*(_utterance(generator, 4, 12) for _ in range(16)), strict=True)
        frame_lengths = torch.tensor([len(one) for one in frames], dtype=torch.int32)
        lengths = torch.tensor([len(one) for one in units], dtype=torch.int32)
        targets = torch.nn.utils.rnn.pad_sequence(list(units), batch_first=True)
        outputs, _, _ = model.predict(torch.nn.functional.pad(targets, (1, 0), value=UNITS), lengths + 1, None)
        padded = torch.nn.utils.rnn.pad_sequence(list(frames), batch_first=True)
        logits, _, _ = model.join(padded, frame_lengths, outputs, lengths + 1)
        loss = transducer_loss(logits, targets.int(), frame_lengths, lengths, UNITS)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 5.0)
        optimiser.step()
    return model.eval()


def _utterance(generator: Any, least: int, most: int) -> tuple[Any, Any]:
    """Units, and frames (T, 256): for each unit its code, which lies near another's, and three of noise."""
    import torch

    codes = torch.randn(UNITS, 256, generator=torch.Generator().manual_seed(4))
    codes = 0.75 * codes + 0.65 * codes.roll(1, 0)
    count = int(torch.randint(least, most, (1,), generator=generator))
    units = torch.randint(0, UNITS, (count,), generator=generator)
    frames = torch.zeros(count, 4, 256)
    frames[:, 0] = codes[units]
    return units, frames.flatten(0, 1) + 0.8 * torch.randn(4 * count, 256, generator=generator)


def _speech() -> list[Any]:
    """Encoded utterances of 2 to 5 seconds (frames, 256), at 40 ms a frame."""
    import torch

    generator = torch.Generator().manual_seed(3)
    return [_utterance(generator, 12, 32)[1] for _ in range(UTTERANCES)]


def _language_model() -> tuple[Any, Any]:
    """Units that spell letters and pairs of letters, and look-ahead into a Transformer over words of letters."""
    import itertools
    import random

    from tasks.language_model.settings import ArchitectureSettings
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
    from tasks.speech.fusion.spelled_units import WORD_BEGIN, SpelledUnits
    from tasks.speech.fusion.word_lookahead import WordLookahead
    from tasks.speech.search.next_word.transformer_model import TransformerNextWord

    letters = "etaoinshrdlu"
    spellings = [*letters, *map("".join, itertools.product(letters, repeat=2))]

    class Units:
        pieces = tuple(f"{WORD_BEGIN if index % 3 == 0 else ''}{spellings[index]}" for index in range(UNITS))

        def decode(self, ids: list[int]) -> str:
            return " ".join("".join(self.pieces[index] for index in ids).replace(WORD_BEGIN, " ").split())

    generator = random.Random(4)
    words: dict[str, None] = {}
    while len(words) < WORDS - len(SPECIAL_TOKENS):
        words["".join(generator.choices(letters, weights=range(12, 0, -1), k=generator.randint(1, 7)))] = None
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *words))
    model = TransformerLanguageModel(ArchitectureSettings(), len(vocabulary))
    model.initialise(5)
    units = SpelledUnits(Units())
    return units, WordLookahead(TransformerNextWord(model, vocabulary), units, -9.2)
