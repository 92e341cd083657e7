"""What the downstream language model says of candidate words: of each word behind its left-hand context, and of what
stands behind it.

The model is read from its folder by the language-model step's own functions and only asked for probabilities. Text is
brought to its words by that step's normalisation. A word outside its vocabulary would get the probability of all such
words together; it gets its share of that, by its frequency among them, so that the probabilities of words sum to 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.filling.frequencies.word_frequencies import WordFrequencies

if TYPE_CHECKING:
    import torch

_BATCH_TOKENS = 4096
_CHUNK_POSITIONS = 512


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known round a slot when it is filled."""

    before: str
    """The whole line up to it."""
    behind: str
    """What stands behind it, up to the next open slot or the end."""
    is_last: bool
    """Whether the line ends there, and no open slot comes."""


class DownstreamScores:
    """Scores words in their surroundings."""

    def __init__(self, folder: str | Path, frequencies: WordFrequencies, following_words: int) -> None:
        """``folder``: a language model that ``palimpsest pretrain`` made. ``following_words``: how many words behind a
        slot are scored; the sentence end counts where the line ends before that.

        Raises ``ModelError`` where the folder is none, incomplete or damaged.
        """
        import torch

        from tasks.language_model.normalisation import normalise
        from tasks.language_model.transformer.folder import load_model

        self._model, self._vocabulary = load_model(folder)
        if torch.cuda.is_available():
            self._model.to("cuda")
        self._normalise, self._following = normalise, following_words
        self._unknown_shares = _shares_of_unknown(frequencies, self._vocabulary.ids, normalise)
        self._rarest = min(self._unknown_shares.values(), default=0.0)

    def score(self, places: Sequence[Surroundings], words: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """For each place ``(K,)`` float64: for each of its words the log-probability in nats of word and what follows.

        What is before the slot is left out, since it is the same for all words of a place.
        """
        from tasks.language_model.vocabulary import UNKNOWN_ID

        scores = [np.zeros(len(row)) for row in words]
        jobs: list[tuple[list[int], int, int, int]] = []  # ids, first scored target, place, word
        for number, (place, row) in enumerate(zip(places, words, strict=True)):
            sequences = self._sequences(place, row)
            common = _common_prefix(sequences)
            for index, (word, ids) in enumerate(zip(row, sequences, strict=True)):
                jobs.append((*self._cut(ids, common), number, index))
                normalised = self._normalise(word)
                if len(normalised) == 1 and self._vocabulary.encode(normalised) == [UNKNOWN_ID]:
                    scores[number][index] += self._unknown_shares.get(normalised[0], self._rarest)
        jobs.sort(key=lambda job: len(job[0]))
        first = 0
        while first < len(jobs):
            last = first + 1
            while last < len(jobs) and (last + 1 - first) * len(jobs[last][0]) <= _BATCH_TOKENS:
                last += 1
            for (_, _, number, index), value in zip(jobs[first:last], self._run(jobs[first:last]), strict=True):
                scores[number][index] += value
            first = last
        return scores

    def _sequences(self, place: Surroundings, words: Sequence[str]) -> list[list[int]]:
        """The ids of the line with each word in the slot."""
        from tasks.language_model.vocabulary import END_ID, START_ID

        behind, ends = place.behind, place.is_last
        # What is glued to the slot belongs to its word.
        wanted = self._following + (behind[:1] != "" and not behind[:1].isspace())
        if len(chunks := behind.split(maxsplit=wanted)) > wanted:
            behind, ends = behind[: len(behind) - len(chunks[-1])], False
        tail = [END_ID] if ends else []
        lines = (place.before + word + behind for word in words)
        return [[START_ID, *self._vocabulary.encode(self._normalise(line)), *tail] for line in lines]

    def _cut(self, ids: list[int], common: int) -> tuple[list[int], int]:
        """At most as many ids as the model has positions, the last ones, and where scoring begins in them."""
        excess = max(0, len(ids) - 1 - self._model.architecture.maximum_tokens)
        return ids[excess:], max(1, common - excess)

    def _run(self, jobs: Sequence[tuple[list[int], int, int, int]]) -> list[float]:
        """The sums of each sequence."""
        import torch

        from tasks.language_model.vocabulary import PADDING_ID

        longest = max(len(ids) for ids, *_ in jobs)
        tokens = torch.full((len(jobs), longest), PADDING_ID)
        # All words of a place are told by the same state, that behind what they have in common; it is used once.
        states: dict[tuple[int, int], tuple[int, int]] = {}
        rows: list[int] = []
        keys: list[tuple[int, int]] = []
        targets: list[int] = []
        for row, (ids, begin, place, _) in enumerate(jobs):
            tokens[row, : len(ids)] = torch.tensor(ids)
            for column in range(begin - 1, len(ids) - 1):
                key = (-1 - place, column) if column == begin - 1 else (row, column)
                states.setdefault(key, (row, column))
                keys.append(key)
                rows.append(row)
                targets.append(ids[column + 1])
        if not targets:
            return [0.0] * len(jobs)
        numbers = {key: number for number, key in enumerate(states)}
        projection = self._model.embedding.weight
        places = torch.tensor(list(states.values()), device=projection.device).T  # (2, S)
        owners = torch.tensor([numbers[key] for key in keys], device=projection.device)  # (N,)
        with torch.inference_mode():
            hidden = self._model(tokens[:, :-1].to(projection.device))  # (B, T, D)
            wanted = torch.tensor(targets, device=projection.device)
            values = _log_probabilities(hidden[places[0], places[1]], projection, owners, wanted)
        return np.bincount(rows, weights=values, minlength=len(jobs)).tolist()


def _log_probabilities(
    states: "torch.Tensor", projection: "torch.Tensor", owners: "torch.Tensor", targets: "torch.Tensor"
) -> np.ndarray:
    """``(N,)`` float64 of the targets, each behind one of the ``(S, D)`` states; a few of these at a time, so
    that their ``(s, V)`` scores stay small."""
    import torch

    sums = torch.cat([(part @ projection.T).logsumexp(dim=1) for part in states.split(_CHUNK_POSITIONS)])  # (S,)
    scores = (states[owners] * projection[targets]).sum(dim=1)  # (N,)
    return (scores - sums[owners]).double().cpu().numpy()


def _common_prefix(sequences: Sequence[list[int]]) -> int:
    """How many ids all sequences begin with."""
    first, last = min(sequences), max(sequences)
    return next((i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))


def _shares_of_unknown(frequencies: WordFrequencies, known: Any, normalise: Any) -> dict[str, float]:
    """Log of the share of each word outside the vocabulary among all such words, by the word counts."""
    counts: dict[str, int] = {}
    for word, count in zip(frequencies.words, frequencies.counts.tolist(), strict=True):
        for normalised in normalise(word):
            if normalised not in known:
                counts[normalised] = counts.get(normalised, 0) + count
    total = sum(counts.values())
    return {word: math.log(count / total) for word, count in counts.items()}
