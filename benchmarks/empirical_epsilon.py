"""The epsilon that noisy counts, and a fill made of them, show at least, against the promised one.

Two corpora differ by the masked words of one line, and each is counted with many keys. An event is seen ``one`` times
in the first and ``other`` times in the second. The bound is log of the least probability of the first by the largest of
the second, each at 97.5 % (Clopper and Pearson 1934), so together at 95 %. A bound above the promise refutes it; one
near it says that no noise is wasted. For the fill the event is chosen on half of the runs, and bounded on the other.
"""

import math
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.frame import row
from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.frequencies.counted_frequencies import Cells, counted_frequencies, noisy_counts
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.methods.unigram import UnigramFiller
from tasks.filling.settings import NoisyCounts

KEYS, RUNS = 20_000, 3000
WORDS = ("digits", "spectral")
PUBLIC = WordFrequencies.of([("the", 900), ("digits", 10), ("spectral", 10), ("queue", 40)])
ALLOWED = AllowedWords(["the"])
PLACES = 20
"""Markers of the corpus that is filled; one of them differs."""


def run(small: bool) -> list[dict[str, Any]]:
    keys, runs, rows = 500 if small else KEYS, 100 if small else RUNS, []
    for epsilon, most in ((1.0, 1), (4.0, 1), (1.0, 3)):
        one, other = (_clear_counts(word, epsilon, most, keys) for word in WORDS)
        name = f"epsilon of noisy counts, {epsilon:g} promised, L = {most}, {keys:,} keys a side"
        rows.append(row(name, lower_bound(one, keys, other, keys), epsilon, "nats", "<= 1.0"))
    name = f"epsilon of a unigram fill as published, 1 promised, {runs:,} runs a side"
    return [*rows, row(name, _bound_of_fills(1.0, runs), 1.0, "nats", "<= 1.0")]


def lower_bound(one: int, of_one: int, other: int, of_other: int) -> float:
    """Of epsilon, by how often an event was seen in two samples; 0 where it says nothing."""
    if not one:
        return 0.0
    least = beta.ppf(0.025, one, of_one - one + 1)
    most = beta.ppf(0.975, other + 1, of_other - other) if other < of_other else 1.0
    return max(0.0, math.log(least / most))


def _corpus(word: str, markers: int, lines: int) -> list[tuple[str, list[MaskedSpan]]]:
    def line(number: int, word: str) -> tuple[str, list[MaskedSpan]]:
        return f"{number}", [MaskedSpan(9 * n, 9 * n + 1, "MASK", "list", word, n) for n in range(markers)]

    return [line(0, word), *(line(number, "queue") for number in range(1, lines))]


def _key(number: int, word: str) -> bytes:
    """Other keys on either side: neighbours have noise of their own."""
    return number.to_bytes(31, "big") + bytes([WORDS.index(word)])


def _clear_counts(word: str, epsilon: float, most: int, keys: int) -> int:
    """How often the first word has a count of L or more and the second none: the event that tells most."""
    settings = NoisyCounts(epsilon=epsilon, words_per_unit=most)
    cells, lines = Cells(PUBLIC, ALLOWED, PUBLIC, count_names=True), _corpus(word, most, 3)
    first, second = map(cells.of, WORDS)
    drawn = (noisy_counts(cells, lines, settings, _key(number, word)).counts for number in range(keys))
    return sum(bool(counts[first] >= most and counts[second] <= 0) for counts in drawn)


def _bound_of_fills(epsilon: float, runs: int) -> float:
    """By how many more places of the fill have the first word than the second."""
    samples = [np.array([_more_of_the_first(word, epsilon, n) for n in range(runs)]) for word in WORDS]
    half = runs // 2
    events = [(sign, least) for sign in (1, -1) for least in range(-PLACES, PLACES + 1)]

    def bound(event: tuple[int, int], part: slice) -> float:
        sign, least = event
        one, other = (int(np.count_nonzero(sign * sample[part] >= least)) for sample in samples[::sign])
        return lower_bound(one, half, other, half)

    best = max(events, key=lambda event: bound(event, slice(0, half)))
    return bound(best, slice(half, 2 * half))


def _more_of_the_first(word: str, epsilon: float, number: int) -> int:
    counted = counted_frequencies(
        PUBLIC, ALLOWED, _corpus(word, 1, PLACES), NoisyCounts(epsilon=epsilon), _key(number, word), public=PUBLIC
    )
    off_list = counted.frequencies.shared(ALLOWED.off_list(PUBLIC.words))
    filler = UnigramFiller({None: off_list}, MarkerRandomness(number))
    written = [filler.draw(Place(line, 0)).word for line in range(1, PLACES + 1)]
    return written.count(WORDS[0]) - written.count(WORDS[1])
