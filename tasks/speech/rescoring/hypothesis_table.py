"""All hypotheses of a test set as arrays: parts of scores for the choice among them, and numbers of errors.

Hypotheses of an utterance that are equal after normalisation are merged, with their best score.

The weights of rescoring are tuned on development lists: a grid, and its best points on resamples of the lists.

score = recogniser's + lm_weight * log P_lm + insertion_bonus * words + unknown_word_bonus * unknown words

The errors of each hypothesis are counted once, so a point of the grid is one pass over arrays. Of points with equally
many errors, the one with the smallest weights counts, since it changes the least.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rapidfuzz.distance import Levenshtein

from tasks.errors import SpeechError
from tasks.language_model.language_models import LanguageModel, Words
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import NbestList
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.weight_grid import LM, UNKNOWN, WORD_COUNT, at_edge, mean_of_best, winners


@dataclass(frozen=True)
class HypothesisTable:
    """Utterances by hypotheses (U, H); shorter lists are padded."""

    utterance_ids: tuple[str, ...]
    hypotheses: Sequence[Sequence[Words]]
    """Distinct hypotheses of each utterance, the recogniser's best first; none if the list is empty."""
    reference_words: np.ndarray
    """Words of each reference (U,), int64."""
    score: np.ndarray
    """The recogniser's score (U, H), float64; minus infinity for padding."""
    errors: np.ndarray
    """Fewest edits from the reference (U, H), int64; for an empty list, all words of the reference."""
    features: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Features that have weights (U, H), float64; 0 for padding."""

    def __len__(self) -> int:
        return len(self.utterance_ids)

    @property
    def empty_references(self) -> int:
        """Number of utterances without a word: all words recognised there are insertions."""
        return int((self.reference_words == 0).sum())

    @property
    def hypothesis_count(self) -> int:
        """Number of distinct hypotheses of all utterances."""
        return sum(map(len, self.hypotheses))

    def choice(self, weights: Mapping[str, float]) -> np.ndarray:
        """Index of the hypothesis with the highest weighted sum for each utterance (U,); the first of equal ones."""
        return winners(self.score, self.features, weights)

    def errors_of(self, weights: Mapping[str, float]) -> np.ndarray:
        """Errors of the choice for each utterance (U,), int64."""
        return np.take_along_axis(self.errors, self.choice(weights)[:, None], axis=1)[:, 0]

    def error_count(self, weights: Mapping[str, float]) -> int:
        """Sum of the errors of all choices."""
        return int(self.errors_of(weights).sum())

    def chosen_texts(self, weights: Mapping[str, float]) -> dict[str, str]:
        """The chosen hypothesis of each utterance that has one."""
        places = self.choice(weights).tolist()
        return {
            name: " ".join(group[place])
            for name, group, place in zip(self.utterance_ids, self.hypotheses, places, strict=True)
            if group
        }

    def oracle_error_count(self) -> int:
        """Errors if the best hypothesis of every list is chosen."""
        return int(self._fewest_errors().sum())

    def best_first_share(self) -> float:
        """Share of the utterances whose recogniser's own choice has as few errors as any in the list: no language model
        can improve these."""
        return float((self.errors[:, 0] == self._fewest_errors()).mean())

    def _fewest_errors(self) -> np.ndarray:
        width = self.errors.shape[1]
        counts = np.array([max(1, len(group)) for group in self.hypotheses])
        inside = np.arange(width) < counts[:, None]
        return np.where(inside, self.errors, np.iinfo(np.int64).max).min(axis=1)

    def with_features(self, **features: Sequence[np.ndarray]) -> "HypothesisTable":
        """The table with more features, given for each utterance's hypotheses."""
        padded = {name: _padded(values, self.score.shape[1], 0.0) for name, values in features.items()}
        return replace(self, features={**self.features, **padded})


def hypothesis_table(
    lists: Sequence[NbestList], what: str = "n-best lists", *, measured: bool = True
) -> HypothesisTable:
    """The hypotheses of n-best lists, with their numbers of words; ``what`` names the lists in an error.

    Raises ``SpeechError`` if no reference has a word; references of lists that are not ``measured`` may be empty.
    """
    ids, groups, scores, errors, reference_words = [], [], [], [], []
    for nbest in lists:
        reference = normalise(nbest.reference)
        # The highest score comes first, so later ones are dropped.
        best: dict[Words, float] = {}
        for hypothesis in nbest.hypotheses:
            best.setdefault(tuple(normalise(hypothesis.text)), hypothesis.score)
        ids.append(nbest.utterance_id)
        groups.append(list(best))
        scores.append(np.array(list(best.values())))
        errors.append([Levenshtein.distance(reference, words) for words in best] or [len(reference)])
        reference_words.append(len(reference))
    if measured and not any(reference_words):
        raise SpeechError(f"none of the {what} has a reference that holds a word; give the words that were said")
    width = max(1, max(map(len, groups)))
    table = HypothesisTable(
        utterance_ids=tuple(ids),
        hypotheses=groups,
        reference_words=np.array(reference_words, dtype=np.int64),
        score=_padded(scores, width, -np.inf),
        errors=_padded(errors, width, 0).astype(np.int64),
    )
    return table.with_features(words=[np.array([len(words) for words in group], dtype=float) for group in groups])


def _padded(rows: Sequence[Sequence[float] | np.ndarray], width: int, filler: float) -> np.ndarray:
    table = np.full((len(rows), width), filler, dtype=np.float64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def with_language_model(tables: Sequence[HypothesisTable], language_model: LanguageModel) -> list[HypothesisTable]:
    """The tables with a language model's log-probabilities, in nats, and its numbers of unknown words."""
    scores = iter(language_model.score_sentences([group for table in tables for group in table.hypotheses]))
    return [
        table.with_features(
            lm=[next(scores) for _ in table.hypotheses],
            unknown_words=[
                np.array([language_model.unknown_words(words) for words in group], dtype=float)
                for group in table.hypotheses
            ],
        )
        for table in tables
    ]


SHOWN_NAMES = {LM: "lm_weight", WORD_COUNT: "insertion_bonus", UNKNOWN: "unknown_word_bonus"}
"""Name of each feature's weight in reports."""
_DIGITS = 6


@dataclass(frozen=True)
class TunedWeights:
    """Weights that were tuned on development lists, by feature of ``HypothesisTable``."""

    weights: Mapping[str, float]
    errors: int
    """Errors on the development lists."""
    fewest_errors: int
    """Errors of the best point of the grid."""
    points: int
    """Number of points of the grid."""
    deviation: Mapping[str, float]
    """Standard deviation of each weight over the resamples; 0 without resamples."""
    at_edge: Sequence[str]
    """Features whose best weight is at an end of its axis, and not 0."""
    grid: Sequence[Mapping[str, float]]
    """Errors at each pair of LM weight and insertion bonus of the grid, with the best of the other weights."""

    def shown(self) -> dict[str, float]:
        """The weights by their names in reports."""
        return {SHOWN_NAMES[name]: weight for name, weight in sorted(self.weights.items())}


def axes_of(settings: RescoringSettings, table: HypothesisTable) -> dict[str, list[float]]:
    """The weights of the grid for each feature of a table with a language model."""
    unknown = settings.unknown_word_bonuses if table.features[UNKNOWN].any() else [0.0]
    return {LM: settings.lm_weights, WORD_COUNT: settings.insertion_bonuses, UNKNOWN: unknown}


def tune_weights(table: HypothesisTable, axes: Mapping[str, Sequence[float]], resamples: int) -> TunedWeights:
    """The weights by ``mean_of_best``, and details of the tuning."""
    names = list(axes)
    # The smallest weights come first, and the first of equal ones counts.
    points = sorted(itertools.product(*axes.values()), key=lambda point: (sum(map(abs, point)), point))
    errors = np.stack([table.errors_of(dict(zip(names, point, strict=True))) for point in points])  # (P, U)
    totals = errors.sum(axis=1)
    mean, deviation = mean_of_best(np.array(points), errors, resamples, _DIGITS)
    tuned = dict(zip(names, mean, strict=True))
    shown = [place for place, name in enumerate(names) if name in (LM, WORD_COUNT)]
    fewest: dict[tuple[float, ...], int] = {}
    for point, count in zip(points, totals.tolist(), strict=True):
        key = tuple(point[place] for place in shown)
        fewest[key] = min(fewest.get(key, count), count)
    return TunedWeights(
        weights=tuned,
        errors=table.error_count(tuned),
        fewest_errors=int(totals.min()),
        points=len(points),
        deviation=dict(zip(names, deviation, strict=True)),
        at_edge=at_edge(axes, points[int(totals.argmin())]),
        grid=[
            {**{SHOWN_NAMES[names[place]]: value for place, value in zip(shown, key, strict=True)}, "errors": count}
            for key, count in sorted(fewest.items())
        ],
    )
