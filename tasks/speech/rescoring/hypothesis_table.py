"""All hypotheses of a test set as arrays: what a choice among them is made by, and how many errors it has.

Hypotheses of an utterance that are the same after normalisation are one, with the best of their scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rapidfuzz.distance import Levenshtein

from tasks.errors import SpeechError
from tasks.language_model.language_models import LanguageModel, Words
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import NbestList

WORD_COUNT, LM, SOURCE, UNKNOWN = "words", "lm", "source", "unknown_words"


@dataclass(frozen=True)
class HypothesisTable:
    """Utterances whose references have a word, by hypotheses (U, H); lists that are shorter are padded."""

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


def hypothesis_table(lists: Sequence[NbestList], what: str = "n-best lists") -> HypothesisTable:
    """The hypotheses of n-best lists, with their numbers of words; ``what`` they are called in an error.

    Raises ``SpeechError`` where no reference holds a word.
    """
    ids, groups, scores, errors, reference_words = [], [], [], [], []
    for nbest in lists:
        reference = normalise(nbest.reference)
        if not reference:
            continue
        # The highest score comes first, so it is the one that is kept.
        best: dict[Words, float] = {}
        for hypothesis in nbest.hypotheses:
            best.setdefault(tuple(normalise(hypothesis.text)), hypothesis.score)
        ids.append(nbest.utterance_id)
        groups.append(list(best))
        scores.append(np.array(list(best.values())))
        errors.append([Levenshtein.distance(reference, words) for words in best] or [len(reference)])
        reference_words.append(len(reference))
    if not ids:
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
