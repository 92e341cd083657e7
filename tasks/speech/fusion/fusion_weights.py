"""Scorers of a fusion and their weights: the tuning on dev, and a file of weights for other language models.

score = transducer + insertion_bonus x words + lm_weight x language model - internal_lm_weight x internal model.
The score of blank is unchanged.

The n-best lists of two decodings of dev give the word errors of every point of the grid (decisions 0023 and 0068). Dev
is decoded with the weights that follow, its lists are added, and the weights are tuned again. Weights that do not lower
the word error rate of a real decoding are not used.
"""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from rapidfuzz.distance import Levenshtein

from tasks.errors import ParameterError, SpeechError
from tasks.language_model.normalisation import normalise
from tasks.language_model.opening import open_language_model
from tasks.settings.base import Settings
from tasks.settings.checks import check_settings
from tasks.speech.fusion.scorers import SpelledUnits, WordCounts, ZeroEncoder
from tasks.speech.fusion.word_lookahead import WordLookahead
from tasks.speech.recogniser.encoded_speech import EncodedSpeech
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.rescoring.settings import FusionSettings, InternalModel, TuneFusionSettings
from tasks.speech.rescoring.tuning import BONUS, INTERNAL, LM, ScoredHypotheses, padded, tune
from tasks.speech.search.beam_search import Fusion, Hypothesis, beam_search
from tasks.speech.search.scorer import Scorer, sentence_scores

_NBEST = 20
"""Maximum of hypotheses of each dev utterance that a decoding adds to the lists."""
_DIGITS = 2
"""Decimals of a mean weight: the deviation over resamples is larger than the third decimal."""
NAMES = (LM, BONUS, INTERNAL)
Point = tuple[float, ...]
"""Weights in the order of ``NAMES``."""
_ALONE: Point = (0.0, 0.0, 0.0)
Scorers = Mapping[str, Scorer]
"""Scorers by the names of their weights."""


def fusion_scorers(model: str, internal: InternalModel, recogniser: Recogniser) -> Scorers:
    """The scorers for a recogniser's beam search."""
    words, units = open_language_model(model).next_words(), SpelledUnits(recogniser.units)
    found: dict[str, Scorer] = {BONUS: WordCounts(units), LM: WordLookahead(words, units)}
    return found | ({INTERNAL: ZeroEncoder()} if internal == "zero_encoder" else {})


def weighted(scorers: Scorers, weights: Mapping[str, float]) -> Fusion:
    """The scorers that the search adds up. Words are always counted; others need a weight."""
    return {name: (scorer, weights[name]) for name, scorer in scorers.items() if weights[name] or name == BONUS}


class FusionWeights(Settings):
    """Weights, with the recogniser and the internal model that they belong to."""

    lm_weight: float = Field(ge=0)
    insertion_bonus: float
    internal_lm_weight: float = Field(default=0.0, ge=0)
    internal_lm: InternalModel
    recogniser_hash: str


def read_weights(path: str, settings: TuneFusionSettings, recogniser: Recogniser) -> dict[str, float]:
    """The weights, by name, of a file of 'palimpsest tune-fusion'.

    Raises ``ParameterError`` if it is no such file, or belongs to another recogniser or other settings.
    """
    try:
        found: FusionWeights = check_settings(FusionWeights, json.loads(Path(path).read_bytes()), f"weights {path!r}")
    except (OSError, ValueError) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else "is no file of fusion weights"
        raise ParameterError(f"--weights: {path!r} {reason}; 'palimpsest tune-fusion' writes one") from None
    tuned = {"recogniser": found.recogniser_hash[:12], "fusion.internal_lm": found.internal_lm}
    here = {"recogniser": recogniser.hash[:12], "fusion.internal_lm": settings.fusion.internal_lm}
    if other := [name for name in tuned if tuned[name] != here[name]]:
        raise ParameterError(
            f"--weights: {path!r} was tuned with {other[0]} {tuned[other[0]]!r}, and here it is {here[other[0]]!r}; "
            "tune again by 'palimpsest tune-fusion'"
        )
    return {name: getattr(found, name) for name in NAMES}


def _grid(settings: FusionSettings) -> tuple[dict[str, list[float]], list[Point], Point]:
    """The values of each weight by its name, all points, and the point that dev is decoded with first.

    If the language model has weight 0, no internal model is subtracted either.
    """
    internal = [0.0] if settings.internal_lm == "none" else settings.internal_lm_weights
    each = [sorted(set(values)) for values in (settings.lm_weights, settings.insertion_bonuses, internal)]
    points = [point for point in itertools.product(*each) if point[0] or not point[2]]
    weight, bonus, middle = (values[(len(values) - 1) // 2] for values in each)
    return dict(zip(NAMES, each, strict=True)), points, (weight, bonus, middle if weight else 0.0)


class _DevLists:
    """The distinct hypotheses of every dev utterance, with parts of scores and word errors."""

    def __init__(self, scorers: Scorers, recogniser: Recogniser, dev: EncodedSpeech) -> None:
        self._scorers, self._recogniser, self._frames = scorers, recogniser, dev.frames
        self.references = [normalise(dev.references[name]) for name in dev.tensors]
        self._lists: list[dict[tuple[int, ...], tuple[Hypothesis, int]]] = [{} for _ in self.references]

    def decode(self, point: Point, settings: TuneFusionSettings) -> int:
        """Decode dev, add its lists, and return the word errors.

        Of equal hypotheses the one with the highest transducer score stays. Parts that the search skipped, because
        their weight is 0, are computed.
        """
        wide = settings.search.model_copy(update={"nbest": settings.search.beam_width})
        fusion = weighted(self._scorers, dict(zip(NAMES, point, strict=True)))
        units, total = self._recogniser.units, 0
        decoded = beam_search(self._recogniser.model, units.blank, self._frames, wide, fusion)
        for reference, entries, hypotheses in zip(self.references, self._lists, decoded, strict=True):
            for place, found in enumerate(hypotheses[:_NBEST]):
                known, errors = entries.get(found.units, (None, -1))
                if known is None:
                    errors = Levenshtein.distance(reference, normalise(units.decode(found.units)))
                if known is None or known.transducer < found.transducer:
                    entries[found.units] = found, errors
                total += 0 if place else errors
        for name, scorer in self._scorers.items():
            every = (found for entries in self._lists for found, _ in entries.values())
            if lacking := [found for found in every if name not in found.parts]:
                sequences = [found.units for found in lacking]
                scores = sentence_scores(scorer, sequences, self._recogniser.model, units.blank)
                for found, score in zip(lacking, scores.tolist(), strict=True):
                    found.parts[name] = score
        return total

    def hypotheses(self) -> ScoredHypotheses:
        """All hypotheses so far (U, H)."""
        found = [[hypothesis for hypothesis, _ in entries.values()] for entries in self._lists]
        wrong = [[errors for _, errors in entries.values()] for entries in self._lists]
        return ScoredHypotheses(
            score=padded([[one.transducer for one in row] for row in found], -np.inf),
            errors=padded(wrong, 0).astype(np.int64),
            parts={name: padded([[one.parts[name] for one in row] for row in found], 0.0) for name in self._scorers},
            divisor=padded([[len(one.units) + 2 for one in row] for row in found], 1.0),
        )


def tuned_weights(
    scorers: Scorers, dev: EncodedSpeech, settings: TuneFusionSettings, recogniser: Recogniser
) -> tuple[FusionWeights, dict[str, Any]]:
    """The weights with the fewest word errors on resamples of dev, and a description of the tuning for the report.

    Of equal points the one with smaller weights counts.
    """
    fusion, lists = settings.fusion, _DevLists(scorers, recogniser, dev)
    words = sum(map(len, lists.references))
    if not words:
        raise SpeechError("none of the references of --dev-manifest holds a word; give the words that were said")
    axes, points, middle = _grid(fusion)
    decoded = {point: lists.decode(point, settings) for point in dict.fromkeys((_ALONE, middle))}
    grid = axes, points, _DIGITS
    for _ in range(fusion.tuning_rounds):
        tuned = tune(lists.hypotheses(), *grid)
        chosen = tuple(tuned.weights.values())
        if chosen in decoded:
            break
        decoded[chosen] = lists.decode(chosen, settings)
    promised = tune(lists.hypotheses(), *grid)
    best = chosen if decoded[chosen] < decoded[_ALONE] else _ALONE
    weights = FusionWeights(
        **dict(zip(NAMES, best, strict=True)), internal_lm=fusion.internal_lm, recogniser_hash=recogniser.hash
    )
    return weights, {
        "wer": decoded[best] / words,
        "wer_alone": decoded[_ALONE] / words,
        "deviations": tuned.deviation,
        "at_edge_of_grid": promised.at_edge,
        "not_encoded": len(dev.references) - len(dev.tensors),
        "grid": promised.grid(words),
        "decoded": [{**dict(zip(NAMES, point, strict=True)), "wer": wrong / words} for point, wrong in decoded.items()],
    }
