"""Hypotheses as arrays, and the tuning of the weights of fusion and of rescoring on dev (decision 0068).

score = recogniser's + lm_weight * log P_lm + insertion_bonus * words + ...

Each hypothesis of dev has the parts of its score and its word errors, as arrays. So a point of the grid of weights is
one pass over arrays. The utterances are drawn many times with replacement. The weights are the mean of the points with
the fewest errors on each draw (Breiman 1996, "Bagging predictors").
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from tasks.errors import SpeechError
from tasks.language_model.language_models import LanguageModel, Words
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import NbestList
from tasks.speech.rescoring.settings import RescoringSettings

LM, BONUS, INTERNAL, UNKNOWN = "lm_weight", "insertion_bonus", "internal_lm_weight", "unknown_word_bonus"
"""Names of weights, and of the parts of a score that they multiply."""
Weights = Mapping[str, float]
"""Weights by name."""
_SEED, _RESAMPLES = 1, 200
_UNKNOWN_WORD_BONUSES = [0.0, -1.0, -2.0, -4.0]
"""Bonuses to try for each word outside the language model's vocabulary. A model trained with many words as one unknown
token finds that token too probable."""


@dataclass(frozen=True, kw_only=True)
class ScoredHypotheses:
    """Utterances by hypotheses (U, H); shorter lists are padded."""

    score: np.ndarray
    """The recogniser's score (U, H), float64; minus infinity for padding."""
    errors: np.ndarray
    """Fewest edits from the reference (U, H), int64; for an empty list, all words of the reference."""
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Parts of the score (U, H) by the name of their weight, float64; 0 for padding."""
    divisor: np.ndarray | float = 1.0
    """Number (U, H) by which a sum is divided before sums are compared."""

    def choice(self, weights: Weights) -> np.ndarray:
        """Index of the hypothesis with the highest weighted sum for each utterance (U,); the first of equal ones."""
        total = self.score
        for name, weight in weights.items():
            if weight:
                total = total + weight * self.parts[name]
        return (total / self.divisor).argmax(axis=1)

    def errors_of(self, weights: Weights) -> np.ndarray:
        """Errors of the choice for each utterance (U,), int64."""
        return np.take_along_axis(self.errors, self.choice(weights)[:, None], axis=1)[:, 0]


def padded(rows: Sequence[Sequence[float] | np.ndarray], filler: float, width: int = 1) -> np.ndarray:
    """Rows of different lengths as one array (U, H) of at least this width, float64."""
    table = np.full((len(rows), max([width, *map(len, rows)])), filler, dtype=np.float64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


@dataclass(frozen=True, kw_only=True)
class HypothesisTable(ScoredHypotheses):
    """The hypotheses of n-best lists with their words.

    Those of an utterance that are equal after normalisation are merged, with their best score.
    """

    hypotheses: Mapping[str, Sequence[Words]]
    """Distinct hypotheses by utterance id, the recogniser's best first; none if the list is empty."""
    reference_words: np.ndarray
    """Words of each reference (U,), int64."""

    @property
    def words(self) -> int:
        """Words of all references."""
        return int(self.reference_words.sum())

    def wer(self, weights: Weights) -> float:
        """Word error rate of the choice with these weights."""
        return int(self.errors_of(weights).sum()) / self.words

    def chosen_texts(self, weights: Weights) -> dict[str, str]:
        """The chosen hypothesis of each utterance that has one."""
        chosen = zip(self.hypotheses.items(), self.choice(weights).tolist(), strict=True)
        return {name: " ".join(group[place]) for (name, group), place in chosen if group}

    def facts(self) -> dict[str, Any]:
        """Rates of the best hypotheses of the lists, and sizes.

        ``best_first_share``: share of the utterances whose recogniser's own choice has as few errors as any in the
        list: no language model can improve these.
        """
        counts = np.array([max(1, len(group)) for group in self.hypotheses.values()])
        inside = np.arange(self.errors.shape[1]) < counts[:, None]
        fewest = np.where(inside, self.errors, np.iinfo(np.int64).max).min(axis=1)
        return {
            "oracle_wer": int(fewest.sum()) / self.words,
            "best_first_share": float((self.errors[:, 0] == fewest).mean()),
            "empty_lists": sum(not group for group in self.hypotheses.values()),
            "hypotheses": sum(map(len, self.hypotheses.values())),
        }

    def with_parts(self, parts: Mapping[str, Sequence[Sequence[float] | np.ndarray]]) -> "HypothesisTable":
        """The table with more parts of scores, given for each utterance's hypotheses."""
        width = self.score.shape[1]
        more = {name: padded(values, 0.0, width) for name, values in parts.items()}
        return replace(self, parts={**self.parts, **more})


def hypothesis_table(
    lists: Sequence[NbestList], what: str = "n-best lists", *, measured: bool = True
) -> HypothesisTable:
    """The hypotheses of n-best lists, with their numbers of words; ``what`` names the lists in an error.

    Raises ``SpeechError`` if no reference has a word; references of lists that are not ``measured`` may be empty.
    """
    references = [normalise(nbest.reference) for nbest in lists]
    if measured and not any(references):
        raise SpeechError(f"none of the {what} has a reference that holds a word; give the words that were said")
    # The highest score comes first, and later ones are dropped.
    best: dict[str, dict[Words, float]] = {nbest.utterance_id: {} for nbest in lists}
    for nbest in lists:
        for hypothesis in nbest.hypotheses:
            best[nbest.utterance_id].setdefault(tuple(normalise(hypothesis.text)), hypothesis.score)
    errors = [
        [Levenshtein.distance(reference, words) for words in group] or [len(reference)]
        for reference, group in zip(references, best.values(), strict=True)
    ]
    table = HypothesisTable(
        hypotheses={name: list(scores) for name, scores in best.items()},
        reference_words=np.array(list(map(len, references)), dtype=np.int64),
        score=padded([list(scores.values()) for scores in best.values()], -np.inf),
        errors=padded(errors, 0).astype(np.int64),
    )
    return table.with_parts({BONUS: [list(map(len, group)) for group in best.values()]})


def with_language_model(tables: Sequence[HypothesisTable], language_model: LanguageModel) -> list[HypothesisTable]:
    """The tables with a language model's log-probabilities, in nats, and its numbers of unknown words."""
    scores = iter(language_model.score_sentences([group for table in tables for group in table.hypotheses.values()]))
    return [
        table.with_parts(
            {
                LM: [next(scores) for _ in table.hypotheses],
                UNKNOWN: [list(map(language_model.unknown_words, group)) for group in table.hypotheses.values()],
            }
        )
        for table in tables
    ]


@dataclass(frozen=True)
class TunedWeights:
    """Weights by name, and how they were found."""

    weights: dict[str, float]
    deviation: dict[str, float]
    """Standard deviation of each weight over the resamples."""
    points: list[dict[str, float]]
    """The grid."""
    errors: list[int]
    """Errors of all utterances at each point."""
    at_edge: list[str]
    """Weights of the best point at an end of their axis, except 0: the grid may be too narrow."""

    def grid(self, words: int) -> list[dict[str, float]]:
        """The word error rate of each point."""
        return [{**point, "wer": errors / words} for point, errors in zip(self.points, self.errors, strict=True)]


def tune(
    hypotheses: ScoredHypotheses,
    axes: Mapping[str, Sequence[float]],
    points: Sequence[tuple[float, ...]] | None = None,
    digits: int = 6,
) -> TunedWeights:
    """The mean of the best ``points`` of a grid on resamples of the utterances, rounded to ``digits``.

    ``axes`` has the values of each weight; without ``points`` all combinations are tried, the smallest weights first,
    since they change the least. Of points with equally many errors, the first one counts. The draws are the same for
    all systems with as many utterances.
    """
    if points is None:
        points = sorted(itertools.product(*axes.values()), key=lambda point: (sum(map(abs, point)), point))
    named = [dict(zip(axes, point, strict=True)) for point in points]
    errors = np.stack([hypotheses.errors_of(weights) for weights in named])  # (P, U)
    totals, utterances = errors.sum(axis=1), errors.shape[1]
    first = named[int(totals.argmin())]
    generator = np.random.default_rng(_SEED)
    draws = generator.multinomial(utterances, np.full(utterances, 1 / utterances), size=_RESAMPLES)  # (R, U)
    # Whole numbers below 2**53: the products in float64 are exact.
    chosen = np.array(points)[(draws.astype(np.float64) @ errors.T.astype(np.float64)).argmin(axis=1)]  # (R, N)
    mean, deviation = (
        dict(zip(axes, found.round(digits).tolist(), strict=True))
        for found in (chosen.mean(axis=0), chosen.std(axis=0))
    )
    at_edge = [
        name for name, axis in axes.items() if first[name] and len(axis) > 1 and first[name] in (min(axis), max(axis))
    ]
    return TunedWeights(mean, deviation, named, totals.tolist(), at_edge)


def axes_of(settings: RescoringSettings, table: HypothesisTable) -> dict[str, list[float]]:
    """The weights of the grid for each part of the scores of a table with a language model."""
    unknown = _UNKNOWN_WORD_BONUSES if table.parts[UNKNOWN].any() else [0.0]
    return {LM: settings.lm_weights, BONUS: settings.insertion_bonuses, UNKNOWN: unknown}
