"""All hypotheses of a test set as arrays: parts of scores for the choice among them, and numbers of errors.

Hypotheses of an utterance that are equal after normalisation are merged, with their best score. The parts are the
number of words, and with a language model its log-probability and its number of unknown words.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from tasks.errors import SpeechError
from tasks.language_model.language_models import LanguageModel, Words
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import NbestList
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.rescoring.tuning import BONUS, LM, UNKNOWN, ScoredHypotheses, TunedWeights, Weights, padded, tune

_DIGITS = 6
_UNKNOWN_WORD_BONUSES = [0.0, -1.0, -2.0, -4.0]
"""Bonuses to try for each word outside the language model's vocabulary. A model trained with many words as one unknown
token finds that token too probable."""


@dataclass(frozen=True, kw_only=True)
class HypothesisTable(ScoredHypotheses):
    """Utterances by hypotheses (U, H), with their words."""

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


def tune_weights(table: HypothesisTable, axes: Mapping[str, Sequence[float]], resamples: int) -> TunedWeights:
    """The weights with the fewest errors on resamples; of equal points, the one with the smallest weights counts, since
    it changes the least."""
    points = sorted(itertools.product(*axes.values()), key=lambda point: (sum(map(abs, point)), point))
    return tune(table, axes, points, resamples, _DIGITS)


def axes_of(settings: RescoringSettings, table: HypothesisTable) -> dict[str, list[float]]:
    """The weights of the grid for each part of the scores of a table with a language model."""
    unknown = _UNKNOWN_WORD_BONUSES if table.parts[UNKNOWN].any() else [0.0]
    return {LM: settings.lm_weights, BONUS: settings.insertion_bonuses, UNKNOWN: unknown}
