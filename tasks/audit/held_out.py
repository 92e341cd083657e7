"""Disclosure by a released text, measured with lines that a coin left out before the text was made (docs/audit.md).

A *unit* is a document, or a line where a text has no documents. A coin decided for each unit whether it went into the
text (a member) or was held out. An *own* run of words occurs in one unit alone. A unit is disclosed if the text has an
own run of it. Its score is the rarity of that run (the sum over its words of 8 minus wordfreq's Zipf frequency). An
attacker takes the ``GUESSES`` units of the highest scores for members:

- **P-value.** Without dependence on the coins, the members among his guesses are hypergeometric. The smallest p-value
  is multiplied by the number of tests (Bonferroni).
- **Epsilon.** Under (epsilon, 0)-differential privacy of units, his right guesses are at most Binomial(guesses,
  q e^epsilon / (q e^epsilon + 1 - q)), with q the probability of a member (Steinke, Nasr and Jagielski 2023,
  arXiv:2305.08846). Here q is the upper end for the observed share (Clopper and Pearson 1934).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from tasks.audit.figure import Figure
from tasks.audit.one_run_epsilon import epsilon_lower_bound
from tasks.corpora.words import folded_words
from tasks.filling.restoration import wilson_interval

RUNS: dict[str, tuple[int, ...]] = {"disclosed_words": (1,), "disclosed_runs": (3, 4, 6, 8)}
"""Figures, and the numbers of words of their runs."""
GUESSES = tuple(4**power for power in range(1, 13))
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_RAREST = 8.0
"""Zipf frequencies of wordfreq are at most this; 0 for a word that it does not know."""
_OF_SHARE = 0.2
"""Part of the error that the upper end of q takes."""
Units = tuple[Sequence[str], Sequence[str]]
"""Lines, and the name of the unit of each."""


def held_out_figures(
    members: Units, held_out: Units, text: Sequence[str], confidence: float = 0.95, seed: int = 1
) -> dict[str, Figure]:
    """For words and for runs: the share of members disclosed, the p-value, and the lower bound of epsilon.

    ``blind`` is the share of disclosed units held out.
    """
    figures = {}
    for name, (own, other) in zip(RUNS, unit_scores(members, held_out, text, RUNS.values()), strict=True):
        known, chance = int(np.count_nonzero(own)), int(np.count_nonzero(other))
        guesses = guesses_of(own, other, seed)
        lengths, units = RUNS[name], len(own) + len(other)
        runs = "words" if lengths == (1,) else f"runs of {lengths[0]} to {lengths[-1]} words"
        attacker = f"looks for {runs} that one unit alone has, in {len(own):,} members and {len(other):,} held out"
        ends = wilson_interval(known, len(own), confidence)
        share, blind = (found / of if of else None for found, of in ((known, len(own)), (chance, len(other))))
        figures[name] = Figure(share, (ends[0], ends[1]) if ends else None, attacker, blind, len(own))
        p_value = p_value_of(guesses, len(own), units)
        figures[f"{name}_p"] = Figure(p_value, None, f"exact test; {attacker}", places=units)
        bound, attack = (
            epsilon_bound(guesses, len(own), len(other), confidence),
            f"lower bound at {100 * confidence:g} %",
        )
        figures[f"{name}_epsilon"] = Figure(bound, None, f"{attack}; {attacker}", 0.0, units)
    return figures


def guesses_of(own: np.ndarray, other: np.ndarray, seed: int) -> list[tuple[int, int]]:
    """Members among the units of the highest scores, and number of these; ties are broken by lot."""
    values = np.concatenate([own, other])
    by_lot = np.random.default_rng(seed).permutation(len(values))
    ranked = by_lot[np.argsort(-values[by_lot], kind="stable")]
    most = int(np.count_nonzero(values))
    numbers = [*(number for number in GUESSES if number < most), most] if most else []
    return [(int(np.count_nonzero(ranked[:number] < len(own))), number) for number in numbers]


def p_value_of(guesses: Sequence[tuple[int, int]], members: int, units: int) -> float:
    """Probability of so many right guesses, if the text does not depend on the coins."""
    from scipy.stats import hypergeom

    tests = [hypergeom.sf(right - 1, units, members, number) for right, number in guesses]
    return min(1.0, float(min(tests)) * len(tests)) if tests else 1.0


def epsilon_bound(guesses: Sequence[tuple[int, int]], members: int, others: int, confidence: float) -> float:
    """The largest epsilon (nats) that the guesses refute at this confidence; 0 if they refute none."""
    from scipy.special import betaincinv

    if not guesses or not others:
        return 0.0
    share = float(betaincinv(members + 1, others, 1 - _OF_SHARE * (1 - confidence)))
    each = 1 - (1 - _OF_SHARE) * (1 - confidence) / len(guesses)
    return max(epsilon_lower_bound(right, number, each, share) for right, number in guesses)


def unit_scores(
    members: Units, held_out: Units, text: Iterable[str], lengths: Iterable[Sequence[int]]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each set of run lengths, the rarity of each member's rarest own run that the text has (M,), 0 without one,
    and of each unit held out (H,). Memory grows with the number of runs."""
    names: dict[tuple[bool, str], int] = {}
    units = [names.setdefault((True, name), len(names)) for name in members[1]]
    of_members = len(names)
    units += [names.setdefault((False, name), len(names)) for name in held_out[1]]
    ids: dict[str, int] = {}
    private = [_word_ids(line, ids) for line in (*members[0], *held_out[0])]
    released = [_word_ids(line, ids) for line in text]
    rarity = np.array([0.0, *map(_rarity, ids)])  # ids begin with 1
    for some in lengths:
        scores = np.zeros(len(names))
        for length in some:
            runs, lines, sums = _runs(private, length, rarity)
            of_unit = np.array(units, dtype=np.int64)[lines]
            order = np.lexsort((of_unit, runs))
            runs, of_unit, sums = runs[order], of_unit[order], sums[order]
            first = np.flatnonzero(np.diff(runs, prepend=runs[:1] + np.uint64(1)))
            last = np.append(first[1:], len(runs)) - 1
            own = first[of_unit[first] == of_unit[last]] if len(runs) else first
            own = own[np.isin(runs[own], _runs(released, length, rarity)[0])]
            np.maximum.at(scores, of_unit[own], sums[own])
        yield scores[:of_members], scores[of_members:]


def _word_ids(line: str, ids: dict[str, int]) -> np.ndarray:
    return np.array([ids.setdefault(word, len(ids) + 1) for word in folded_words(line)], dtype=np.uint64)


@lru_cache(maxsize=1 << 16)
def _rarity(word: str) -> float:
    import wordfreq

    return _RAREST - wordfreq.zipf_frequency(word, "en")


def _runs(lines: Iterable[np.ndarray], length: int, rarity: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A number for each run of words (R,), equal for equal runs; the line of each, and the sum of rarities."""
    found, of_line, sums = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for number, words in enumerate(lines):
        if (runs := len(words) - length + 1) > 0:
            mixed, of_words = np.zeros(runs, np.uint64), rarity[words.astype(np.int64)]
            for place in range(length):
                mixed = (mixed ^ words[place : place + runs]) * _FACTOR
                mixed ^= mixed >> np.uint64(29)
            found.append(mixed)
            of_line.append(np.full(runs, number))
            sums.append(np.convolve(of_words, np.ones(length), "valid"))
    return np.concatenate(found), np.concatenate(of_line), np.concatenate(sums)
