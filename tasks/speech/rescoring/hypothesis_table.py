"""All hypotheses of a test set as arrays: what a choice among them is made by, and how many errors it has.

Hypotheses of an utterance that are the same after normalisation are one, with the best of their scores.

The weights of rescoring, tuned on development lists: a grid, and what of it is best on resamples of the lists.

score = recogniser's + lm_weight * log P_lm - source_weight * log P_source + insertion_bonus * words
        + unknown_word_bonus * unknown words

The errors of each hypothesis are counted once, so a point of the grid is one pass over arrays. Around the best point
many others have nearly as few errors, and which of them has the fewest is chance: on real lists it moved the language
model's weight between 0.2 and 0.4 for models that hardly differ. So the utterances are drawn again and again, with
replacement, and the weights are the mean of the points that have the fewest errors on each draw (Breiman 1996, "Bagging
predictors"). Of points with equally many errors, the one with the smallest weights counts: it changes the least.
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

WORD_COUNT, LM, SOURCE, UNKNOWN = "words", "lm", "source", "unknown_words"


@dataclass(frozen=True)
class HypothesisTable:
    """Utterances by hypotheses (U, H); lists that are shorter are padded."""

    utterance_ids: tuple[str, ...]
    hypotheses: Sequence[Sequence[Words]]
    """Distinct hypotheses of each utterance, the recogniser's best first; none where the list is empty."""
    reference_words: np.ndarray
    """Words of each reference (U,), int64."""
    score: np.ndarray
    """The recogniser's (U, H), float64; minus infinity for padding."""
    errors: np.ndarray
    """Fewest edits from the reference (U, H), int64; of an empty list, all words of the reference."""
    features: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Numbers that weights are for (U, H), float64; 0 for padding."""

    def __len__(self) -> int:
        return len(self.utterance_ids)

    @property
    def empty_references(self) -> int:
        """Utterances without a word: all that is recognised there is inserted."""
        return int((self.reference_words == 0).sum())

    @property
    def hypothesis_count(self) -> int:
        """Distinct hypotheses of all utterances."""
        return sum(map(len, self.hypotheses))

    def choice(self, weights: Mapping[str, float]) -> np.ndarray:
        """Place of the hypothesis with the highest weighted sum for each utterance (U,); of equal ones the first."""
        total = self.score
        for name, weight in weights.items():
            if weight:
                total = total + weight * self.features[name]
        return total.argmax(axis=1)

    def errors_of(self, weights: Mapping[str, float]) -> np.ndarray:
        """Errors of the choice for each utterance (U,), int64."""
        return np.take_along_axis(self.errors, self.choice(weights)[:, None], axis=1)[:, 0]

    def error_count(self, weights: Mapping[str, float]) -> int:
        """Errors of all choices together."""
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
        """Errors where the best hypothesis of every list is chosen."""
        return int(self._fewest_errors().sum())

    def best_first_share(self) -> float:
        """Share of the utterances whose recogniser's own choice has as few errors as any of its list: there, no
        language model can win a word."""
        return float((self.errors[:, 0] == self._fewest_errors()).mean())

    def _fewest_errors(self) -> np.ndarray:
        width = self.errors.shape[1]
        counts = np.array([max(1, len(group)) for group in self.hypotheses])
        inside = np.arange(width) < counts[:, None]
        return np.where(inside, self.errors, np.iinfo(np.int64).max).min(axis=1)

    def with_features(self, **features: Sequence[np.ndarray]) -> "HypothesisTable":
        """The table with further numbers, given for each utterance's hypotheses."""
        padded = {name: _padded(values, self.score.shape[1], 0.0) for name, values in features.items()}
        return replace(self, features={**self.features, **padded})


def hypothesis_table(
    lists: Sequence[NbestList], what: str = "n-best lists", *, measured: bool = True
) -> HypothesisTable:
    """The hypotheses of n-best lists, with their numbers of words; ``what`` they are called in an error.

    Raises ``SpeechError`` where no reference holds a word; references of lists that are not ``measured`` may be empty.
    """
    ids, groups, scores, errors, reference_words = [], [], [], [], []
    for nbest in lists:
        reference = normalise(nbest.reference)
        # The highest score comes first, so it is the one that is kept.
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


def with_language_model(
    tables: Sequence[HypothesisTable], language_model: LanguageModel, name: str = LM
) -> list[HypothesisTable]:
    """The tables with a language model's log-probabilities, in nats, and its numbers of unknown words.

    The unknown words of the source model are no feature.
    """
    groups = [group for table in tables for group in table.hypotheses]
    scores = language_model.score_sentences(groups)
    scored, begin = [], 0
    for table in tables:
        features = {name: scores[begin : begin + len(table)]}
        if name == LM:
            features[UNKNOWN] = [
                np.array([language_model.unknown_words(words) for words in group], dtype=float)
                for group in table.hypotheses
            ]
        scored.append(table.with_features(**features))
        begin += len(table)
    return scored


SHOWN_NAMES = {
    LM: "lm_weight",
    WORD_COUNT: "insertion_bonus",
    SOURCE: "source_weight",
    UNKNOWN: "unknown_word_bonus",
}
"""What the weight of each feature is called in reports."""
_SEED = 1


@dataclass(frozen=True)
class TunedWeights:
    """The weights that development lists speak for."""

    weights: Mapping[str, float]
    """By feature of ``HypothesisTable``; what is subtracted has a negative one."""
    errors: int
    """On the development lists."""
    fewest_errors: int
    """Those of the best point of the grid."""
    points: int
    """Combinations that were tried."""
    deviation: Mapping[str, float]
    """Standard deviation of each weight over the resamples; empty without resamples."""
    at_edge: Sequence[str]
    """Features whose best weight in the grid is the grid's first or last, and not 0: the grid may be too narrow."""
    grid: Sequence[Mapping[str, float]] = field(default_factory=list)
    """Errors at each pair of LM weight and insertion bonus of the grid, with the best of the other weights."""

    def shown(self) -> dict[str, float]:
        """The weights by their names in reports; the source model's is positive."""
        return {
            SHOWN_NAMES[name]: abs(weight) if name == SOURCE else weight
            for name, weight in sorted(self.weights.items())
        }


def axes_of(settings: RescoringSettings, table: HypothesisTable) -> dict[str, list[float]]:
    """The weights of the grid for each feature that the table has."""
    axes = {
        LM: settings.lm_weights,
        WORD_COUNT: settings.insertion_bonuses,
        UNKNOWN: settings.unknown_word_bonuses
        if UNKNOWN in table.features and table.features[UNKNOWN].any()
        else [0.0],
        SOURCE: [-weight for weight in settings.source_weights],
    }
    return {name: values for name, values in axes.items() if name in table.features}


def tune_weights(table: HypothesisTable, axes: Mapping[str, Sequence[float]], resamples: int) -> TunedWeights:
    """The mean of the points of the grid with the fewest errors on each of ``resamples`` draws of the utterances.

    The draws are the same for all tables with as many utterances, so systems are tuned on the same ones. Without
    resamples, the point with the fewest errors on the utterances as they are.
    """
    names = list(axes)
    # The smallest weights come first, and the first of equal ones counts.
    points = sorted(itertools.product(*axes.values()), key=lambda point: (sum(map(abs, point)), point))
    errors = np.stack([table.errors_of(dict(zip(names, point, strict=True))) for point in points])  # (P, U)
    totals = errors.sum(axis=1)
    best = points[int(totals.argmin())]
    weights, deviation = np.array(best), {}
    if resamples:
        utterances = len(table)
        generator = np.random.default_rng(_SEED)
        draws = generator.multinomial(utterances, np.full(utterances, 1 / utterances), size=resamples)  # (R, U)
        # Whole numbers below 2**53: the products in float64 are exact.
        found = (draws.astype(np.float64) @ errors.T.astype(np.float64)).argmin(axis=1)  # (R,)
        chosen = np.array(points)[found]  # (R, N)
        weights = chosen.mean(axis=0).round(6)
        deviation = dict(zip(names, chosen.std(axis=0).round(6).tolist(), strict=True))
    tuned = dict(zip(names, weights.tolist(), strict=True))
    at_edge = [
        name
        for name, value in zip(names, best, strict=True)
        if value != 0 and len(axes[name]) > 1 and value in (min(axes[name]), max(axes[name]))
    ]
    return TunedWeights(
        weights=tuned,
        errors=table.error_count(tuned),
        fewest_errors=int(totals.min()),
        points=len(points),
        deviation=deviation,
        at_edge=at_edge,
        grid=_summary(names, points, totals.tolist()),
    )


def _summary(
    names: Sequence[str], points: Sequence[tuple[float, ...]], errors: Sequence[int]
) -> list[dict[str, float]]:
    shown = [place for place, name in enumerate(names) if name in (LM, WORD_COUNT)]
    best: dict[tuple[float, ...], int] = {}
    for point, count in zip(points, errors, strict=True):
        key = tuple(point[place] for place in shown)
        best[key] = min(best.get(key, count), count)
    return [
        {**{SHOWN_NAMES[names[place]]: value for place, value in zip(shown, key, strict=True)}, "errors": best[key]}
        for key in sorted(best)
    ]
