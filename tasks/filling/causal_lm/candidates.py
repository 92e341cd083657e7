"""Candidate words for a slot from what stands to its left, and how well each goes with what stands to its right.

The words are looked for piece by piece on copies of the rows that were read so far. Every candidate is read together
with the first known words behind the slot, so one pass says three things of it: whether it ends there, how it might
go on, and how likely the right-hand context is behind it.

With ``left`` the text before a slot, ``right`` the known words behind it and ``w`` a word,

    log p(w | left, right) = log p(w | left) + log p(right | left, w) + constant.

Two ways of looking: ``BestWords`` for Top-1 and Top-K follows the most likely pieces (a beam). ``DrawnWords`` for
``sample`` draws the first pieces without replacement, by an exponential race, and gives each the weight
``p / (1 - exp(-p t))`` with ``t`` the time of the first piece that is left out: the chance of a draw over the chance to
be among those drawn (Duffield, Lund and Thorup 2007, priority sampling; Kool, van Hoof and Welling 2019). So the choice
among a few candidates stands for a draw from the whole distribution; with one candidate it is a draw by the left-hand
context alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from tasks.filling.causal_lm.language_model import CausalWords
from tasks.filling.causal_lm.rows import CausalRows, length_groups
from tasks.filling.causal_lm.word_kinds import Kind, Words
from tasks.filling.fill_words import Wanted
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness, Place

LONGEST_WORD = 5
"""Pieces of a word at most."""
_CONTINUATIONS = 2
"""A word that is not finished is carried on in so many ways."""


@dataclass(frozen=True, slots=True)
class SlotContext:
    """What is known of a slot."""

    place: Place
    spaced: bool
    following: list[int]
    """Pieces of the known words behind it."""
    want: Wanted = "either"
    language: str | None = None
    """The one that the word is to have."""
    kind: Kind = None
    """What else it is to be, or that language."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word for a slot and its score: a log-probability but for a constant."""

    word: str
    pieces: tuple[int, ...]
    score: float


@dataclass(slots=True)
class Branch:
    """The beginning of a word in the slot of one row."""

    row: int
    pieces: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the model says behind a branch."""

    word: str | None
    """The word that ends here, if it is one."""
    end: float
    """Log-probability that the word ends here."""
    continuations: np.ndarray
    """``(C,)`` pieces that may carry the word on."""
    log_probabilities: np.ndarray
    """``(C,)``, of these."""


class WayOfLooking(Protocol):
    """Where branches begin and how they go on."""

    def first(self, scores: np.ndarray, slot: SlotContext) -> list[tuple[int, float]]:
        """First pieces for a slot with their scores, from the ``(V,)`` log-probabilities behind its left context."""
        ...

    def continuations(self, ahead: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Pieces ``(N, C)`` that may carry on the words of ``N`` branches, and their log-probabilities, from those of
        all pieces ``(N, V)``."""
        ...

    def go_on(
        self, branch: Branch, slot: SlotContext, outlook: Outlook
    ) -> tuple[float | None, list[tuple[int, float]]]:
        """The branch's score if it ends (``None`` if it does not), and next pieces with the scores of these."""
        ...

    def prune(self, branches: list[Branch], finished: list[Candidate]) -> list[Branch]:
        """Which of a slot's branches are followed."""
        ...


class BestWords:
    """The most likely words: a beam as wide as the number of candidates."""

    def __init__(self, words: Words, count: int) -> None:
        self._words, self._count = words, count
        self._continues = torch.from_numpy(np.flatnonzero(words[None].continues))

    def first(self, scores: np.ndarray, slot: SlotContext) -> list[tuple[int, float]]:
        """The most likely first pieces."""
        allowed = np.flatnonzero(self._words[slot.kind].begins[slot.spaced])
        best = allowed[np.argsort(-scores[allowed], kind="stable")[: self._count]]
        return [(int(piece), float(scores[piece])) for piece in best]

    def continuations(self, ahead: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """The most likely ones."""
        continues = self._continues.to(ahead.device)
        best = ahead[:, continues].topk(min(_CONTINUATIONS, len(continues)), dim=1)
        return continues[best.indices].cpu().numpy(), best.values.cpu().numpy()

    def go_on(
        self, branch: Branch, slot: SlotContext, outlook: Outlook
    ) -> tuple[float | None, list[tuple[int, float]]]:
        """The word if it is one, and its most likely continuations."""
        ended = branch.score + outlook.end if outlook.word is not None else None
        more = zip(outlook.continuations.tolist(), outlook.log_probabilities.tolist(), strict=True)
        return ended, [(piece, branch.score + score) for piece, score in more]

    def prune(self, branches: list[Branch], finished: list[Candidate]) -> list[Branch]:
        """Those that can still be among the best."""
        kept = sorted(branches, key=lambda branch: -branch.score)[: max(1, self._count // 2)]
        if len(finished) < self._count:
            return kept
        limit = sorted((candidate.score for candidate in finished), reverse=True)[self._count - 1]
        return [branch for branch in kept if branch.score > limit]


class DrawnWords:
    """Words off the list of kept words, drawn from the model's distribution."""

    def __init__(
        self,
        words: Words,
        count: int,
        kept: KeptWords,
        randomness: MarkerRandomness,
        temperature: float,
        factors: Mapping[str, float] | None = None,
    ) -> None:
        """``factors``: of folded words what will be added to their scores over the temperature, in nats. Pieces are
        drawn with the mean of the words that begin so, which comes off again."""
        self._words, self._factors = words, factors
        self._count, self._randomness, self._temperature = count, randomness, temperature
        self._of_kind: dict[Kind, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._continues = np.flatnonzero(words[None].continues)
        self._kept = kept

    def first(self, scores: np.ndarray, slot: SlotContext) -> list[tuple[int, float]]:
        """Pieces drawn without replacement, with the logarithm of their weights.

        A piece that is a word on the list is left out here already: another word that merely begins with it is
        written with pieces of its own.
        """
        if slot.kind not in self._of_kind:
            self._of_kind[slot.kind] = self._first_pieces(self._words[slot.kind])
        allowed, ahead = self._of_kind[slot.kind][slot.spaced]
        if not allowed.size:
            return []
        logits = scores[allowed].astype(np.float64) / self._temperature + ahead
        chances = np.exp(logits - np.logaddexp.reduce(logits))
        # Stream 0 of a place is the choice's own.
        generator = self._randomness.at(slot.place, stream=1)
        # Clocks that all run at the speed of their piece; the smallest positive number keeps 0 / 0 out of the race.
        clocks = generator.standard_exponential(allowed.size) / np.maximum(chances, np.finfo(np.float64).tiny)
        count = min(self._count, allowed.size)
        order = np.argsort(clocks, kind="stable")
        drawn = order[:count]
        if count == allowed.size:
            weights = np.log(chances[drawn])
        else:
            weights = log_weights(chances[drawn], float(clocks[order[count]]))
        weights = self._temperature * (weights - ahead[drawn])
        return list(zip(allowed[drawn].tolist(), weights.tolist(), strict=True))

    def continuations(self, ahead: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """All of them, at the temperature of the draw."""
        if self._temperature != 1:
            ahead = torch.log_softmax(ahead / self._temperature, dim=1)
        more = ahead[:, torch.from_numpy(self._continues).to(ahead.device)].cpu().numpy()
        return np.broadcast_to(self._continues, more.shape), more

    def go_on(
        self, branch: Branch, slot: SlotContext, outlook: Outlook
    ) -> tuple[float | None, list[tuple[int, float]]]:
        """Ends or goes on by chance; where it cannot end, its weight is the chance to go on."""
        chances = np.exp(outlook.log_probabilities.astype(np.float64))
        to_go_on = float(chances.sum())
        generator = self._randomness.at(slot.place, stream=2 + branch.pieces[0], step=len(branch.pieces))
        can_end = outlook.word is not None and not self._kept.holds(outlook.word, slot.language)
        if can_end and generator.random() >= to_go_on:
            return branch.score, []
        if not to_go_on:
            return None, []
        clocks = generator.standard_exponential(chances.size) / np.maximum(chances, np.finfo(np.float64).tiny)
        score = branch.score if can_end else branch.score + self._temperature * float(np.log(to_go_on))
        return None, [(int(outlook.continuations[np.argmin(clocks)]), score)]

    def _first_pieces(self, words: CausalWords) -> list[tuple[np.ndarray, np.ndarray]]:
        """As ``CausalWords.begins``: the pieces that words off the list begin with, and the mean factors of these."""
        off_list = self._kept.off_list(words.candidates.words, words.language)  # (W,)
        means = words.mean_factors(self._factors or {})
        found = []
        for begins, whole, mean in zip(words.begins, words.whole, means, strict=True):
            allowed = np.flatnonzero(begins & ((whole < 0) | off_list[whole]))
            found.append((allowed, mean[allowed]))
        return found

    def prune(self, branches: list[Branch], finished: list[Candidate]) -> list[Branch]:
        """All of them: leaving one out would change the chances."""
        return branches


def log_weights(chances: np.ndarray, threshold: float) -> np.ndarray:
    """``log(p / (1 - exp(-p t)))`` for what was drawn without replacement before the time ``t``."""
    return np.log(chances) - np.log(-np.expm1(-chances * threshold))


def candidates_of_slots(
    rows: CausalRows, scores: torch.Tensor, slots: Sequence[SlotContext], words: Words, way: WayOfLooking
) -> list[list[Candidate]]:
    """Candidates for one slot of each of ``B`` rows, whose left contexts ``rows`` have read.

    ``scores`` ``(B, V)``: the model's behind them. The candidates of a slot are different words; of one that was found
    in two ways the better way counts.
    """
    left = torch.log_softmax(scores, dim=1).cpu().numpy()  # (B, V)
    found: list[list[Candidate]] = [[] for _ in slots]
    # Slots with about as many known pieces behind them go together, so that little is padded.
    branches = [
        Branch(row, (piece,), score) for row, slot in enumerate(slots) for piece, score in way.first(left[row], slot)
    ]
    for group in length_groups([max(1, len(slots[branch.row].following)) for branch in branches], rows.enough_pieces):
        _follow([branches[index] for index in group], rows, slots, words, way, found)
    return [_distinct(candidates) for candidates in found]


def _follow(
    branches: list[Branch],
    rows: CausalRows,
    slots: Sequence[SlotContext],
    words: Words,
    way: WayOfLooking,
    found: list[list[Candidate]],
) -> None:
    """Follow branches to their ends, and put the words into their slots' lists."""
    source, sources = rows, [branch.row for branch in branches]
    for length in range(1, LONGEST_WORD + 1):
        if not branches:
            break
        read = source.chosen(sources)
        behind = [slots[branch.row].following for branch in branches]
        pieces = [[branch.pieces[-1], *following[:-1]] for branch, following in zip(branches, behind, strict=True)]
        wanted = list(map(len, pieces))
        ahead = torch.log_softmax(read.read(pieces, wanted), dim=1)  # (sum, V)
        starts = np.cumsum([0, *wanted[:-1]]).tolist()
        first = ahead[starts]  # (N, V): behind each branch
        ends = _end_log_probabilities(first, words[None])
        continuations, log_probabilities = way.continuations(first)  # (N, C) each
        right = _right_scores(ahead, behind, starts, ends, words[None])
        following_branches: list[Branch] = []
        origins: list[int] = []
        by_slot: dict[int, list[tuple[Branch, int]]] = {}
        for index, branch in enumerate(branches):
            slot = slots[branch.row]
            word = _word(branch.pieces, slot, words[slot.kind])
            outlook = Outlook(word, ends[index], continuations[index], log_probabilities[index])
            ended, more = way.go_on(branch, slot, outlook)
            if ended is not None and word is not None:
                found[branch.row].append(Candidate(word, branch.pieces, ended + right[index]))
            if length < LONGEST_WORD:
                longer = [Branch(branch.row, (*branch.pieces, piece), score) for piece, score in more]
                by_slot.setdefault(branch.row, []).extend(
                    (grown, index) for grown in longer if words[slot.kind].may_become_word(grown.pieces)
                )
        for row, grown in by_slot.items():
            origin = {id(branch): index for branch, index in grown}
            for branch in way.prune([branch for branch, _ in grown], found[row]):
                following_branches.append(branch)
                origins.append(origin[id(branch)])
        read.take_back([len(new) - 1 for new in pieces])
        source, sources, branches = read, origins, following_branches


def _word(pieces: tuple[int, ...], slot: SlotContext, words: CausalWords) -> str | None:
    if len(pieces) > 1:
        return words.text(pieces)
    index = words.whole[slot.spaced][pieces[0]]
    return words.candidates.words[index] if index >= 0 else None


def _end_log_probabilities(ahead: torch.Tensor, words: CausalWords) -> list[float]:
    """``(N,)`` log-probability that no letter or digit comes next, from ``(N, V)`` log-probabilities."""
    continues = torch.from_numpy(np.flatnonzero(words.continues)).to(ahead.device)
    more = ahead[:, continues].exp().sum(dim=1).clamp(max=1 - 1e-6)
    ends: list[float] = torch.log1p(-more).tolist()
    return ends


def _right_scores(
    ahead: torch.Tensor, behind: Sequence[list[int]], starts: Sequence[int], ends: Sequence[float], words: CausalWords
) -> list[float]:
    """Log-probability of the known pieces behind each branch, given that its word ends there."""
    rows = [start + i for start, following in zip(starts, behind, strict=True) for i in range(len(following))]
    targets = [piece for following in behind for piece in following]
    if not targets:
        return [0.0] * len(behind)
    values = ahead[rows, targets].tolist()
    scores = []
    position = 0
    for following, end in zip(behind, ends, strict=True):
        score = sum(values[position : position + len(following)])
        position += len(following)
        # Behind a word that ends, its first piece has the end's probability in it already.
        scores.append(score - end if following and not words.continues[following[0]] else score)
    return scores


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.word not in best or candidate.score > best[candidate.word].score:
            best[candidate.word] = candidate
    # In an order that the last bits of the scores do not decide.
    return sorted(best.values(), key=lambda candidate: candidate.pieces)
