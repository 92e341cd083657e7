"""Identifiers left unmasked in a whole text, estimated from the reviewed lines, with design-based intervals.

The text is fixed, and the draw of lines is all that is random. So lines are the unit, whatever documents they are of.

- **Totals** are stratified Horvitz-Thompson estimates: every identifier read counts N/n times, by its stratum.
- **Their intervals** are of the part that was not read: gamma quantiles with the mean and the variance of a weighted sum
  of rare counts (Fay and Feuer 1997, "Confidence intervals for directly standardized rates", Statistics in Medicine
  16). The upper one allows for one more line like the heaviest that may have been missed. Where none was found this is
  the exact hypergeometric bound, maximised over strata. A stratum that is read whole adds nothing.
- **Recall** is the ratio of masked to all identifiers. Its interval is recovered from those of the masked and unmasked
  totals (MOVER-R: Donner and Zou 2012, "Closed-form confidence intervals for functions of the normal mean and standard
  deviation", Statistical Methods in Medical Research 21).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.audit.clear_text import Words
from tasks.review.plan import Plan
from tasks.review.record import Mark


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with both ends of its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Unmasked:
    """Identifiers of one sort (direct, quasi, or one class) that one technique leaves unmasked."""

    found: int
    """Identifiers in the reviewed lines."""
    unmasked_found: int
    """Those of them with at least one word that the technique does not mask."""
    per_thousand: Interval
    """Unmasked identifiers per 1,000 lines of the whole text."""
    recall: Interval | None
    """Share of identifiers that are masked whole; ``None`` where the sample holds none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a review says of one technique."""

    lines: int
    """Lines reviewed."""
    direct: Unmasked
    quasi: Unmasked
    classes: Mapping[str, Unmasked]


@dataclass(frozen=True)
class Sample:
    """How many lines of each of H strata were read."""

    sizes: np.ndarray
    """(H,) lines of the text."""
    read: np.ndarray
    """(H,) of which the reviewer read so many."""
    confidence: float = 0.95

    @property
    def missed(self) -> float:
        """How many lines may hold what no line read holds: an exact upper end."""
        return most_unseen(self.sizes, self.read, (1 - self.confidence) / 2)

    def total(self, sums: np.ndarray, squares: np.ndarray, a_line: np.ndarray) -> tuple[np.ndarray, ...]:
        """Estimate, lower and upper end (...) of a total over the text.

        ``sums``, ``squares``: (..., H) of the counts in the lines read, and of the counts squared. ``a_line``: (...) how
        many a line holds that holds any.
        """
        tail = (1 - self.confidence) / 2
        read = np.maximum(self.read, 1)
        weight = self.sizes / read
        seen = sums.sum(-1)
        rest = (sums * (weight - 1)).sum(-1)
        spread = squares - sums**2 / (read + 2)
        variance = (weight**2 * (1 - read / self.sizes) * spread).sum(-1)
        unseen = a_line * self.missed / -np.log(tail)
        low = seen + _gamma_quantile(rest, variance, tail)
        return seen + rest, low, seen + _gamma_quantile(rest + unseen, variance + unseen**2, 1 - tail)


def most_unseen(sizes: np.ndarray, read: np.ndarray, tail: float) -> float:
    """The most lines of a text that can hold an identifier, if a probability of ``tail`` is to be left that no line
    read holds one.

    Of D lines in a stratum of N none is among n drawn with probability C(N-D, n) / C(N, n). Its logarithm falls faster
    with each further line, so the worst text is found one line at a time, each where it costs least.
    """
    costs = []
    for size, drawn in zip(sizes.tolist(), read.tolist(), strict=True):
        most = size - drawn if drawn == 0 else min(size - drawn, int(-np.log(tail) * size / drawn) + 1)
        lines = np.arange(most)
        costs.append(np.log1p(drawn / (size - drawn - lines)))
    spent = np.cumsum(np.sort(np.concatenate(costs)))
    whole = int(np.searchsorted(spent, -np.log(tail), side="right"))
    if whole == len(spent):
        return float(whole)
    before = spent[whole - 1] if whole else 0.0
    return float(whole + (-np.log(tail) - before) / (spent[whole] - before))


def _gamma_quantile(mean: np.ndarray, variance: np.ndarray, probability: float) -> np.ndarray:
    """Of the gamma distribution with this mean and variance; the mean itself where the variance is 0."""
    from scipy.special import gammaincinv

    certain = (variance <= 0) | (mean <= 0)
    scale = np.where(certain, 1.0, variance / np.where(certain, 1.0, mean))
    found = scale * gammaincinv(np.where(certain, 1.0, mean) / scale, probability)
    return np.where(certain, mean, found)


def recall_interval(masked: Sequence[np.ndarray], unmasked: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Estimate and ends of masked / (masked + unmasked), each (...), from the same of both; not a number where both
    estimates are 0.

    A recall r is within the interval if 0 is within that of r * unmasked - (1 - r) * masked.
    """
    (m, m_low, m_high), (u, u_low, u_high) = masked, unmasked

    def end(m_side: np.ndarray, u_side: np.ndarray, sign: int) -> np.ndarray:
        low, high = np.zeros_like(m), np.ones_like(m)
        for _ in range(50):
            r = (low + high) / 2
            above = r * u - (1 - r) * m - sign * np.hypot(r * u_side, (1 - r) * m_side) > 0
            low, high = np.where(above, low, r), np.where(above, r, high)
        return (low + high) / 2

    with np.errstate(invalid="ignore"):
        value = m / (m + u)
    return value, end(m - m_low, u_high - u, -1), end(m_high - m, u - u_low, 1)


def estimate(
    plan: Plan, marks: Mapping[int, Sequence[Mark]], masked: Mapping[int, Words], confidence: float = 0.95
) -> Estimate:
    """What one technique leaves unmasked.

    ``marks``: by line number, for the first n lines of the plan's queue, an empty sequence where a line has none.
    ``masked``: the words of these lines that the technique masks.

    Words of one class with at most one character between them are one identifier. It is direct where one of them is.
    """
    stratum = dict(plan.queue[: len(marks)])
    sample = _sample(plan, len(marks), confidence)
    counts: dict[str, Counter[tuple[int, bool]]] = {}
    for line, words in marks.items():
        for mention in _mentions(words):
            whole = all((word.start, word.end) in masked[line] for word in mention)
            sort = "direct" if any(word.direct for word in mention) else "quasi"
            for key in (sort, f"class {mention[0].label}"):
                counts.setdefault(key, Counter())[line, whole] += 1
    of = {key: _unmasked(sample, stratum, counts.get(key, Counter())) for key in {"direct", "quasi", *counts}}
    classes = {key.removeprefix("class "): found for key, found in sorted(of.items()) if key.startswith("class ")}
    return Estimate(len(marks), of["direct"], of["quasi"], classes)


def lines_needed(
    plan: Plan, reviewed: int, limit: float, confidence: float = 0.95, found: Callable[[int], float] | None = None
) -> int | None:
    """How many lines are still to be reviewed until the upper bound is at most ``limit`` unmasked identifiers per 1,000
    lines, if no further one is found; ``None`` where the whole text would not do."""

    def bound(read: int) -> float:
        return 1000 * _sample(plan, read, confidence).missed / plan.lines

    reads = range(max(reviewed, 1), len(plan.queue) + 1)
    more = bisect_left(reads, True, key=lambda read: bound(read) <= limit)
    return more + reads[0] - reviewed if more < len(reads) else None


def _sample(plan: Plan, read: int, confidence: float) -> Sample:
    drawn = Counter(stratum for _, stratum in plan.queue[:read])
    sizes = np.array([stratum.lines for stratum in plan.strata])
    return Sample(sizes, np.array([drawn[stratum] for stratum in range(len(sizes))]), confidence)


def _mentions(words: Iterable[Mark]) -> list[list[Mark]]:
    found: list[list[Mark]] = []
    for word in sorted(words, key=lambda word: word.start):
        last = found[-1][-1] if found else None
        if last and last.label == word.label and word.start - last.end <= 1:
            found[-1].append(word)
        else:
            found.append([word])
    return found


def _unmasked(sample: Sample, stratum: Mapping[int, int], counts: Mapping[tuple[int, bool], int]) -> Unmasked:
    """``counts``: identifiers by line and whether they are masked whole."""
    sums, squares = np.zeros((2, len(sample.sizes))), np.zeros((2, len(sample.sizes)))
    for (line, whole), count in counts.items():
        sums[int(whole), stratum[line]] += count
        squares[int(whole), stratum[line]] += count**2
    found = int(sums.sum())
    a_line = np.array(found / max(len({line for line, _ in counts}), 1) if found else 1.0)
    unmasked, masked = (sample.total(sums[side], squares[side], a_line) for side in (0, 1))
    lines = sample.sizes.sum()
    ends = [Interval(*map(float, values)) for values in (1000 * np.array(unmasked) / lines,)]
    recall = Interval(*map(float, recall_interval(masked, unmasked))) if found else None
    return Unmasked(found, int(sums[0].sum()), ends[0], recall)
