"""Weights of fusion, found on dev.

Dev is decoded without a language model and with the weights in the middle of the grid. The n-best lists of both, with
their scores in parts, say for every point of the grid which hypothesis of an utterance would win and how many words of
it would be wrong. Many points have nearly as few errors as the best one, and which of them is best is chance. So the
utterances are drawn again and again with replacement, and each weight is the mean of those that are best on a draw, as
in rescoring (decision 0068). Dev is decoded with these weights, its lists are added, and they are found again. Weights
that do not lower the word error rate of a real decoding are not used.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass

import numpy as np

from tasks.speech.fusion.shallow_fusion import FusionWeights
from tasks.speech.rescoring.settings import FusionSettings
from tasks.speech.search.predictor_states import Hypothesis

NBEST = 20
"""Hypotheses of each utterance of dev, at most, that a decoding adds to the lists."""
_MISSING = np.iinfo(np.int32).max
_SEED = 1
_DIGITS = 2
"""Decimals of a weight that is a mean: the deviation over resamples is larger than the third."""


@dataclass(frozen=True, slots=True)
class TuningResult:
    """The weights, and how they were found."""

    weights: FusionWeights
    deviation: dict[str, float]
    """Standard deviation of each weight over the resamples; 0 without resamples."""
    best: FusionWeights
    """The point of the grid with the fewest errors by the lists of all decodings."""
    grid: list[dict[str, float]]
    """Each point with the word error rate that the lists promise in the last round."""
    decoded: list[dict[str, float]]
    """Each point that dev was decoded with, and its word error rate."""


Decode = Callable[[FusionWeights], list[list[Hypothesis]]]
Complete = Callable[[list[list[Hypothesis]], FusionWeights], list[list[Hypothesis]]]
"""Fills in the parts that the search left out because their weight was 0."""
CountErrors = Callable[[Sequence[tuple[int, tuple[int, ...]]]], list[int]]
"""Word errors of hypotheses: index of the utterance and units."""


def grid_of(settings: FusionSettings) -> list[FusionWeights]:
    """All points of the grid; a language model without weight has no internal model to take off either."""
    internal = [0.0] if settings.internal_lm == "none" else sorted(set(settings.internal_lm_weights))
    points = itertools.product(sorted(set(settings.lm_weights)), sorted(set(settings.insertion_bonuses)), internal)
    return [FusionWeights(*point) for point in points if point[0] or not point[2]]


def middle_of(settings: FusionSettings) -> FusionWeights:
    """The point that dev is decoded with first."""

    def middle(values: Sequence[float]) -> float:
        ordered = sorted(set(values))
        return ordered[(len(ordered) - 1) // 2]

    internal = 0.0 if settings.internal_lm == "none" else middle(settings.internal_lm_weights)
    weight = middle(settings.lm_weights)
    return FusionWeights(weight, middle(settings.insertion_bonuses), internal if weight else 0.0)


def at_edge_of_grid(settings: FusionSettings, best: FusionWeights) -> list[str]:
    """Weights of the best point that are the first or the last of their grid, and not 0: the grid may be too narrow."""
    grids = {"lm_weight": settings.lm_weights, "insertion_bonus": settings.insertion_bonuses}
    if settings.internal_lm != "none":
        grids["internal_lm_weight"] = settings.internal_lm_weights
    plain = asdict(best)
    return [
        name
        for name, grid in grids.items()
        if plain[name] and len(set(grid)) > 1 and plain[name] in (min(grid), max(grid))
    ]


def tune(
    settings: FusionSettings,
    decode: Decode,
    complete: Complete,
    count_errors: CountErrors,
    words: int,
    normalised: bool,
) -> TuningResult:
    """The weights with the fewest word errors on resamples of dev.

    ``words`` of the references, to divide by; ``normalised`` whether scores are divided by the units plus 2. Of equal
    points the one with the smaller weights counts.
    """
    lists = ListErrors(count_errors, normalised)
    decoded: dict[FusionWeights, int] = {}

    def decode_at(weights: FusionWeights) -> None:
        found = decode(weights)
        decoded[weights] = sum(count_errors([(index, best[0].units) for index, best in enumerate(found)]))
        lists.add(complete([hypotheses[:NBEST] for hypotheses in found], weights))

    alone = FusionWeights(0.0, 0.0)
    decode_at(alone)
    decode_at(middle_of(settings))
    points = grid_of(settings)
    for _ in range(settings.tuning_rounds):
        chosen, deviation = mean_of_best(points, lists.errors(points), settings.resamples)
        if chosen in decoded:
            break
        decode_at(chosen)
    promised = lists.errors(points).sum(axis=1)
    return TuningResult(
        weights=chosen if decoded[chosen] < decoded[alone] else alone,
        deviation=deviation,
        best=points[int(promised.argmin())],
        grid=[{**asdict(point), "wer": int(count) / words} for point, count in zip(points, promised, strict=True)],
        decoded=[{**asdict(point), "wer": count / words} for point, count in decoded.items()],
    )


def mean_of_best(
    points: Sequence[FusionWeights], errors: np.ndarray, resamples: int
) -> tuple[FusionWeights, dict[str, float]]:
    """The mean of the points with the fewest ``errors`` (P, U) on draws of the utterances, and its deviation."""
    utterances = errors.shape[1]
    draws = np.ones((1, utterances))
    if resamples:
        generator = np.random.default_rng(_SEED)
        draws = generator.multinomial(utterances, np.full(utterances, 1 / utterances), size=resamples).astype(float)
    found = np.array([astuple(points[place]) for place in (draws @ errors.T).argmin(axis=1)])  # (R, 3)
    mean, deviation = found.mean(axis=0), found.std(axis=0).round(_DIGITS).tolist()
    chosen = FusionWeights(*(mean.round(_DIGITS) if resamples else mean).tolist())
    return chosen, dict(zip(asdict(chosen), deviation, strict=True))


class ListErrors:
    """The hypotheses of every utterance, each once, with parts of scores and word errors."""

    def __init__(self, count_errors: CountErrors, normalised: bool) -> None:
        self._count_errors, self._normalised = count_errors, normalised
        self._entries: list[dict[tuple[int, ...], Hypothesis]] = []
        self._errors: dict[tuple[int, tuple[int, ...]], int] = {}

    def add(self, found: list[list[Hypothesis]]) -> None:
        """Add lists; of two equal hypotheses the one that the transducer gives more stays."""
        self._entries = self._entries or [{} for _ in found]
        for entries, hypotheses in zip(self._entries, found, strict=True):
            for hypothesis in hypotheses:
                earlier = entries.get(hypothesis.units)
                if earlier is None or earlier.transducer < hypothesis.transducer:
                    entries[hypothesis.units] = hypothesis
        keys = [(index, units) for index, entries in enumerate(self._entries) for units in entries]
        new = [key for key in keys if key not in self._errors]
        self._errors |= dict(zip(new, self._count_errors(new), strict=True))

    def errors(self, points: Sequence[FusionWeights]) -> np.ndarray:
        """Word errors (P, U) of the hypothesis that wins at each point, by utterance."""
        most = max(map(len, self._entries))
        parts = np.zeros((5, len(self._entries), most))  # transducer, language model, words, internal, divisor
        parts[0], parts[4] = -np.inf, 1.0
        errors = np.full(parts.shape[1:], _MISSING, dtype=np.int64)
        for index, entries in enumerate(self._entries):
            for place, found in enumerate(entries.values()):
                length = len(found.units) + 2 if self._normalised else 1
                parts[:, index, place] = (found.transducer, found.language_model, found.words, found.internal, length)
                errors[index, place] = self._errors[index, found.units]
        transducer, language_model, words, internal, divisor = parts
        totals = []
        for point in points:
            score: np.ndarray = transducer + point.lm_weight * language_model + point.insertion_bonus * words
            score = (score - point.internal_lm_weight * internal) / divisor
            totals.append(np.take_along_axis(errors, score.argmax(axis=1)[:, None], axis=1)[:, 0])
        return np.stack(totals)
