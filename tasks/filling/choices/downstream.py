"""Downstream: candidates are also weighed by the language model that is trained on the filled text (paper, section 5).

The paper leaves "an objective nearer to the downstream task" to later. Here one more factor joins those of
``log_linear``:

    p(w | x)  proportional to  p_filler^a' * p_frequency^b' * p_average^-d' * p_LM(w, what follows | what is before)^c

with p_LM the generic, pretrained language model that every adaptation starts from; it has seen no private text either.
It reads the fills so far, so places are filled from left to right.

Scoring every candidate would cost thousands of passes a place, so K of them are scored:

- ``sample``: the race of ``log_linear`` gives word w an exponential clock E_w / q(w), q by the exponents a, b, d that
  were learned without p_LM; the K words whose clocks ring first are scored, and of these the one with the smallest
  E_w / p(w) is taken. With all words for K that is an exact draw from p; with fewer it is one as often as the winner is
  among the K first. With c = 0 and the same exponents it is the very word that ``log_linear`` draws.
- ``best``: of the K words with the highest q the one with the highest p.

The exponents are learned as in ``log_linear``, on the same places of generic text. The sum over all candidates is out
of reach, so each true word is told from words drawn from q: the conditional likelihood of the true one among them, all
scored by log p - log q, is again concave, and its maximum tends to the same exponents (ranking noise-contrastive
estimation, Ma and Collins 2018, section 3).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from tasks.errors import ModelError
from tasks.filling.choices.choice import Chosen, Forbidden, without_forbidden
from tasks.filling.choices.log_linear import LogLinearScores
from tasks.filling.choices.top_k import best_candidates
from tasks.filling.filled_corpus import Filler
from tasks.filling.log_linear.downstream_scores import Surroundings
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Fill, MaskedSentence


class WordScores(Protocol):
    """A language model that scores words in their surroundings."""

    def score(self, places: Sequence[Surroundings], words: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """For each place ``(K,)`` log-probabilities in nats, up to a constant of the place."""
        ...


@dataclass(frozen=True)
class DownstreamWeighing:
    """The scores of both kinds."""

    proposal: LogLinearScores
    """log q."""
    final: LogLinearScores
    """log p without the language model."""
    language_model_weight: float
    """c."""


class ChooseDownstream:
    """Weighs K candidates by a language model; ``begin`` tells it of the sentences that are filled next."""

    def __init__(
        self,
        weighing: DownstreamWeighing,
        words: Sequence[str],
        allowed: np.ndarray,
        randomness: MarkerRandomness,
        language_model: WordScores,
        *,
        k: int,
        choose: Literal["sample", "best"],
    ) -> None:
        """``words``: the ``W`` words that the filler can write; ``allowed``: ``(W,)`` booleans, the candidates."""
        self._weighing, self._words, self._randomness = weighing, words, randomness
        self._allowed = np.flatnonzero(allowed)
        if self._allowed.size == 0:
            raise ModelError("no word that this filler can write is a candidate: nothing to choose")
        self._language_model, self._k, self._choose = language_model, k, choose
        self._slots: dict[Place, tuple[MaskedSentence, int]] = {}
        self._written: dict[Place, str] = {}

    def begin(self, sentences: Sequence[MaskedSentence]) -> None:
        """Take the sentences that are filled next, and forget all others."""
        self._written = {}
        self._slots = {
            Place(sentence.number, slot.first_marker): (sentence, index)
            for sentence in sentences
            for index, slot in enumerate(sentence.slots)
        }

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores; where every candidate is forbidden, from all words."""
        proposal = without_forbidden(self._weighing.proposal.of(scores), forbidden)
        final = self._weighing.final.of(scores)
        fallbacks = np.isneginf(proposal[:, self._allowed].max(axis=1))
        pools: list[np.ndarray] = []
        clocks: list[np.ndarray] = []
        for row, place in enumerate(places):
            among = np.arange(proposal.shape[1]) if fallbacks[row] else self._allowed
            pool, rest = self._first(proposal[row, among], place)
            pools.append(among[pool])
            clocks.append(rest)
        asked = [row for row, pool in enumerate(pools) if pool.size > 1]
        said = self._language_model.score(
            [self._surroundings(places[row]) for row in asked],
            [[self._words[index] for index in pools[row]] for row in asked],
        )
        winners = np.array([pool[0] for pool in pools], dtype=np.int64)
        for row, log_probabilities in zip(asked, said, strict=True):
            pool = pools[row]
            # In float64 and rounded: words that are equally good do not differ by how their sums were rounded.
            weight = self._weighing.language_model_weight
            total = np.round(final[row, pool] + weight * log_probabilities - clocks[row], 5)
            winners[row] = pool[int(np.argmax(total))]
        for place, winner in zip(places, winners.tolist(), strict=True):
            self._written[place] = self._words[winner]
        return Chosen(winners, fallbacks)

    def _first(self, scores: np.ndarray, place: Place) -> tuple[np.ndarray, np.ndarray]:
        """Of ``(A,)`` scores the ``(K,)`` indices of those to be weighed, the first first, and the log of their clocks
        (0 where nothing is drawn); forbidden ones are none."""
        number = min(self._k, int(np.count_nonzero(~np.isneginf(scores))))
        if self._choose == "best":
            return best_candidates(scores[None], number)[0], np.zeros(number)
        clocks = self._randomness.at(place).standard_exponential(len(scores), dtype=np.float32)
        logarithms = np.log(np.maximum(clocks, np.finfo(np.float32).tiny))
        first = best_candidates((scores - logarithms)[None], number)[0]
        return first, logarithms[first].astype(np.float64)

    def _surroundings(self, place: Place) -> Surroundings:
        sentence, index = self._slots[place]
        before = [sentence.texts[0]]
        for slot, text in zip(sentence.slots[:index], sentence.texts[1:], strict=False):
            word = self._written.get(Place(sentence.number, slot.first_marker))
            # In a line longer than the filler's positions an earlier slot may still be open: what is behind it counts.
            before = [text] if word is None else [*before, word, text]
        return Surroundings("".join(before), sentence.texts[index + 1], index + 1 == len(sentence.slots))


class DownstreamFiller:
    """Another filler, whose choice is told which sentences are filled."""

    def __init__(self, filler: Filler, choice: ChooseDownstream) -> None:
        self._filler, self._choice = filler, choice
        self.counts = getattr(filler, "counts", {})
        """What the filler counted."""

    @property
    def forward_seconds(self) -> float | None:
        """Seconds inside the filler's model so far; the language model's are not in it."""
        return self._filler.forward_seconds

    @property
    def candidate_count(self) -> int:
        """How many words the filler chooses from."""
        return self._filler.candidate_count

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        self._choice.begin(sentences)
        return self._filler.fill(sentences, advance)
