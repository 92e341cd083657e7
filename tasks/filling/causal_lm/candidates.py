"""Candidate words for a slot of a causal LM, scored by the left and the right context.

The search extends words piece by piece. Each candidate is read after the left context, together with the first known
words after the slot. With ``left`` the text before a slot, ``right`` these words and ``w`` a word,

    log p(w | left, right) = log p(w | left) + log p(right | left, w) + constant.

``BestWords``, for Top-1 and Top-K, follows the most likely pieces (beam search). ``DrawnWords``, for ``sample``, draws
the first pieces without replacement, by an exponential race. Each gets the weight ``p / (1 - exp(-p t))``, the
probability of a draw divided by the probability of inclusion, where ``t`` is the time of the first piece that is not
drawn (Duffield, Lund and Thorup 2007, priority sampling; Kool, van Hoof and Welling 2019). So the choice among a few
candidates estimates a draw from the whole distribution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tasks.filling.causal_lm.read_texts import ReadTexts
from tasks.filling.causal_lm.words import CausalWords, WordsOfKinds
from tasks.filling.fill_words import Wanted
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Kind

LONGEST_WORD = 5
"""Maximum number of pieces in a word."""
_CONTINUATIONS = 2
"""Continuations that the beam search follows for each unfinished word."""
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class SlotContext:
    """Context and required kind of the word at one slot."""

    place: Place
    spaced: bool
    following: list[int]
    """Pieces of the known words after the slot."""
    want: Wanted = "either"
    kind: Kind = None
    """Class, form or language that the word must have."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word for a slot and its score: a log-probability plus a constant."""

    word: str
    pieces: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Branch:
    """The beginning of a word in the slot of one row."""

    row: int
    pieces: tuple[int, ...]
    score: float


class BestWords:
    """The most likely words: a beam as wide as the number of candidates."""

    def __init__(self, words: WordsOfKinds, count: int) -> None:
        self._words, self._count = words, count
        self._continues = torch.from_numpy(np.flatnonzero(words[None].continues))

    def first(self, scores: np.ndarray, slot: SlotContext) -> list[tuple[int, float]]:
        """The most likely first pieces with their scores, by the ``(V,)`` log-probabilities."""
        allowed = np.flatnonzero(self._words[slot.kind].begins[slot.spaced])
        best = allowed[np.argsort(-scores[allowed], kind="stable")[: self._count]]
        return [(int(piece), float(scores[piece])) for piece in best]

    def continuations(self, ahead: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """``(N, C)`` most likely continuations and their log-probabilities, from ``(N, V)``."""
        continues = self._continues.to(ahead.device)
        best = ahead[:, continues].topk(min(_CONTINUATIONS, len(continues)), dim=1)
        return continues[best.indices].cpu().numpy(), best.values.cpu().numpy()

    def go_on(
        self, branch: Branch, slot: SlotContext, word: str | None, end: float, pieces: np.ndarray, logs: np.ndarray
    ) -> tuple[float | None, list[tuple[int, float]]]:
        """The score of the branch if it ends (``None`` if it does not), and the next pieces with their scores.

        ``word``: the word that the branch makes, if any; ``end``: log-probability that the word ends here. ``pieces``
        and ``logs``: ``(C,)`` continuations and their log-probabilities.
        """
        ended = branch.score + end if word is not None else None
        return ended, [(piece, branch.score + log) for piece, log in zip(pieces.tolist(), logs.tolist(), strict=True)]

    def prune(self, branches: list[Branch], finished: list[Candidate]) -> list[Branch]:
        """The branches that can still be among the best."""
        best = sorted(branches, key=lambda branch: -branch.score)[: max(1, self._count // 2)]
        if len(finished) < self._count:
            return best
        limit = sorted((candidate.score for candidate in finished), reverse=True)[self._count - 1]
        return [branch for branch in best if branch.score > limit]


class DrawnWords:
    """Words drawn from the model's distribution, without those on the list of never-masked words."""

    def __init__(
        self,
        words: WordsOfKinds,
        count: int,
        allowed_words: AllowedWords,
        randomness: MarkerRandomness,
        temperature: float,
        factors: Mapping[str, float] | None = None,
    ) -> None:
        """``factors``: for each folded word a term in nats that is later added to its score over the temperature. Draws
        of first pieces add the mean factor of their words, and weights subtract it again."""
        self._words, self._factors = words, factors
        self._count, self._randomness, self._temperature = count, randomness, temperature
        self._of_kind: dict[Kind, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._continues = np.flatnonzero(words[None].continues)
        self._allowed_words = allowed_words

    def first(self, scores: np.ndarray, slot: SlotContext) -> list[tuple[int, float]]:
        """Pieces drawn without replacement, with the logarithm of their weights.

        A piece that is a whole word on the list is never drawn. The tokenizer writes a longer word that begins with it
        in other pieces.
        """
        if slot.kind not in self._of_kind:
            self._of_kind[slot.kind] = self._first_pieces(self._words[slot.kind])
        allowed, ahead = self._of_kind[slot.kind][slot.spaced]
        if not allowed.size:
            return []
        logits = scores[allowed].astype(np.float64) / self._temperature + ahead
        chances = np.exp(logits - np.logaddexp.reduce(logits))
        # Stream 0 of a place is for the choice among candidates.
        generator = self._randomness.at(slot.place, stream=1)
        # Exponential clocks with the probability as rate; the smallest positive number avoids 0 / 0.
        clocks = generator.standard_exponential(allowed.size) / np.maximum(chances, _TINY)
        count = min(self._count, allowed.size)
        order = np.argsort(clocks, kind="stable")
        drawn = order[:count]
        whole = count == allowed.size
        weights = np.log(chances[drawn]) if whole else log_weights(chances[drawn], float(clocks[order[count]]))
        weights = self._temperature * (weights - ahead[drawn])
        return list(zip(allowed[drawn].tolist(), weights.tolist(), strict=True))

    def continuations(self, ahead: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """``(N, C)`` all continuations and their log-probabilities at the temperature of the draw, from ``(N, V)``."""
        if self._temperature != 1:
            ahead = torch.log_softmax(ahead / self._temperature, dim=1)
        more = ahead[:, torch.from_numpy(self._continues).to(ahead.device)].cpu().numpy()
        return np.broadcast_to(self._continues, more.shape), more

    def go_on(
        self, branch: Branch, slot: SlotContext, word: str | None, end: float, pieces: np.ndarray, logs: np.ndarray
    ) -> tuple[float | None, list[tuple[int, float]]]:
        """End or continue at random. A branch that cannot end is weighted by its probability to continue."""
        chances = np.exp(logs.astype(np.float64))
        to_go_on = float(chances.sum())
        generator = self._randomness.at(slot.place, stream=2 + branch.pieces[0], step=len(branch.pieces))
        can_end = word is not None and not self._allowed_words.holds(word, slot.kind)
        if can_end and generator.random() >= to_go_on:
            return branch.score, []
        if not to_go_on:
            return None, []
        clocks = generator.standard_exponential(chances.size) / np.maximum(chances, _TINY)
        score = branch.score if can_end else branch.score + self._temperature * float(np.log(to_go_on))
        return None, [(int(pieces[np.argmin(clocks)]), score)]

    def prune(self, branches: list[Branch], finished: list[Candidate]) -> list[Branch]:
        """All branches: leaving one out would change the probabilities."""
        return branches

    def _first_pieces(self, words: CausalWords) -> list[tuple[np.ndarray, np.ndarray]]:
        """First pieces of the words that are not on the list, and their mean factors, in the order of
        ``CausalWords.begins``."""
        off_list = self._allowed_words.off_list(words.candidates.words, words.kind)  # (W,)
        found = []
        for begins, whole, mean in zip(words.begins, words.whole, words.mean_factors(self._factors or {}), strict=True):
            allowed = np.flatnonzero(begins & ((whole < 0) | off_list[whole]))
            found.append((allowed, mean[allowed]))
        return found


def log_weights(chances: np.ndarray, threshold: float) -> np.ndarray:
    """``log(p / (1 - exp(-p t)))`` for pieces drawn without replacement before the time ``t``."""
    return np.log(chances) - np.log(-np.expm1(-chances * threshold))


def candidates_of_slots(
    read: ReadTexts, slots: Sequence[SlotContext], words: WordsOfKinds, search: BestWords | DrawnWords
) -> list[list[Candidate]]:
    """Candidates for one slot of each of ``B`` texts that the model has ``read`` up to this slot.

    The candidates of a slot are different words. A word found twice has its better score.
    """
    left = torch.log_softmax(read.scores, dim=1).cpu().numpy()  # (B, V)
    found: list[list[Candidate]] = [[] for _ in slots]
    branches = [
        Branch(row, (piece,), score) for row, slot in enumerate(slots) for piece, score in search.first(left[row], slot)
    ]
    for length in range(1, LONGEST_WORD + 1):
        if branches:
            branches = _followed(branches, read, slots, words, search, found, last=length == LONGEST_WORD)
    return list(map(_distinct, found))


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.word not in best or candidate.score > best[candidate.word].score:
            best[candidate.word] = candidate
    # Sort by pieces: rounding of the scores must not change the order.
    return sorted(best.values(), key=lambda candidate: candidate.pieces)


def _followed(
    branches: list[Branch],
    read: ReadTexts,
    slots: Sequence[SlotContext],
    words: WordsOfKinds,
    search: BestWords | DrawnWords,
    found: list[list[Candidate]],
    *,
    last: bool,
) -> list[Branch]:
    """Add the words that branches make to those of their slots, and return the longer branches unless it is the
    ``last`` step."""
    rights = [slots[branch.row].following for branch in branches]
    wanted = [max(1, len(following)) for following in rights]
    pieces = [[*branch.pieces, *following[:-1]] for branch, following in zip(branches, rights, strict=True)]
    ahead = torch.log_softmax(read.continued([branch.row for branch in branches], pieces, wanted), dim=1)  # (sum, V)
    starts = np.cumsum([0, *wanted[:-1]]).tolist()
    first = ahead[starts]  # (N, V): after each branch
    ends = _end_log_probabilities(first, words[None])
    continuations, log_probabilities = search.continuations(first)  # (N, C) each
    right = _right_scores(ahead, rights, starts, ends, words[None])
    grown: dict[int, list[Branch]] = {}
    for index, branch in enumerate(branches):
        slot = slots[branch.row]
        of_kind = words[slot.kind]
        word = of_kind.word(branch.pieces, spaced=slot.spaced)
        ended, more = search.go_on(branch, slot, word, ends[index], continuations[index], log_probabilities[index])
        if ended is not None and word is not None:
            found[branch.row].append(Candidate(word, branch.pieces, ended + right[index]))
        for piece, score in () if last else more:
            if of_kind.may_become_word((*branch.pieces, piece)):
                grown.setdefault(branch.row, []).append(Branch(branch.row, (*branch.pieces, piece), score))
    return [branch for row, longer in grown.items() for branch in search.prune(longer, found[row])]


def _end_log_probabilities(ahead: torch.Tensor, words: CausalWords) -> list[float]:
    """``(N,)`` log-probability that no letter or digit comes next, from ``(N, V)`` log-probabilities."""
    continues = torch.from_numpy(np.flatnonzero(words.continues)).to(ahead.device)
    more = ahead[:, continues].exp().sum(dim=1).clamp(max=1 - 1e-6)
    ends: list[float] = torch.log1p(-more).tolist()
    return ends


def _right_scores(
    ahead: torch.Tensor, rights: Sequence[list[int]], starts: Sequence[int], ends: Sequence[float], words: CausalWords
) -> list[float]:
    """Log-probability of the known pieces after each branch, given that its word ends there."""
    rows = [start + i for start, following in zip(starts, rights, strict=True) for i in range(len(following))]
    targets = [piece for following in rights for piece in following]
    values = iter(ahead[rows, targets].tolist() if targets else [])
    scores = []
    for following, end in zip(rights, ends, strict=True):
        score = sum(next(values) for _ in following)
        # The probability of the first following piece already includes the probability that the word ends.
        scores.append(score - end if following and not words.continues[following[0]] else float(score))
    return scores
