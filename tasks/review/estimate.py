"""Identifiers left unmasked in a whole text, estimated from the reviewed lines, with design-based intervals.

- **Totals** are stratified Horvitz-Thompson estimates: every identifier read counts N/n times, by its stratum.
- **Their intervals** are quantiles of the gamma distribution with the mean and variance of a weighted sum of counts
  (Fay and Feuer 1997, "Confidence intervals for directly standardized rates", Statistics in Medicine 16). The upper end
  allows for one more missed line like the heaviest. Without a find this is the exact hypergeometric bound,
  maximised over strata. A stratum that is read whole adds nothing.
- **Recall** is the ratio of masked to all identifiers, with the interval of MOVER-R (Donner and Zou 2012, "Closed-form
  confidence intervals for functions of the normal mean and standard deviation", Statistical Methods in Medical
  Research 21).
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
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
    """Identifiers of one kind (direct, quasi, or one class) that one technique leaves unmasked."""

    found: int
    """Identifiers in the reviewed lines."""
    unmasked_found: int
    """Those of them with at least one unmasked word."""
    per_thousand: Interval
    """Unmasked identifiers per 1,000 lines of the whole text."""
    recall: Interval | None
    """Share of identifiers that are masked whole; ``None`` if the sample has none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimates of a review for one technique."""

    lines: int
    """Lines reviewed."""
    direct: Unmasked
    quasi: Unmasked
    classes: Mapping[str, Unmasked]


Ends = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Estimate, lower and upper end, (...) each."""


@dataclass(frozen=True)
class Sample:
    """Number of lines read in each of H strata."""

    sizes: np.ndarray
    """(H,) lines of the text."""
    read: np.ndarray
    """(H,) lines that the reviewer has read."""
    confidence: float = 0.95

    def total(self, sums: np.ndarray, squares: np.ndarray, a_line: np.ndarray) -> Ends:
        """A total over the text.

        ``sums``, ``squares``: (..., H) of the counts in the lines read, and of the squared counts. ``a_line``: (...)
        mean count of lines with at least one.
        """
        tail = (1 - self.confidence) / 2
        read = np.maximum(self.read, 1)
        weight = self.sizes / read
        seen, value = sums.sum(-1), (sums * weight).sum(-1)
        spread = squares - sums**2 / (read + 2)
        variance = (weight**2 * (1 - read / self.sizes) * spread).sum(-1)
        unseen = a_line * most_unseen(self.sizes, self.read, tail) / -np.log(tail)
        low = np.maximum(seen, _gamma_quantile(value, variance, tail))
        return value, low, seen + _gamma_quantile(value - seen + unseen, variance + unseen**2, 1 - tail)


def most_unseen(sizes: np.ndarray, read: np.ndarray, tail: float) -> float:
    """The most lines of a text that can have an identifier, if the probability that no line read has one is
    ``tail``.

    Of D lines in a stratum of N none is among n drawn with probability C(N-D, n) / C(N, n). Its logarithm falls faster
    with each further line, so the worst text is found one line at a time, always at the lowest cost.
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
    """A quantile of the gamma distribution with this mean and variance; the mean itself if the variance is 0."""
    from scipy.special import gammaincinv

    certain = (variance <= 0) | (mean <= 0)
    scale = np.where(certain, 1.0, variance / np.where(certain, 1.0, mean))
    found = scale * gammaincinv(np.where(certain, 1.0, mean) / scale, probability)
    return np.where(certain, mean, found)


def estimate(
    plan: Plan, marks: Mapping[int, Sequence[Mark]], masked: Mapping[int, Words], confidence: float = 0.95
) -> Estimate:
    """The estimates of identifiers that one technique leaves unmasked.

    ``marks``: by line number, for the first n lines of the plan's queue; empty for a line without marks. ``masked``:
    the words of these lines that the technique masks.

    Words of one class with at most one character between them are one identifier. It is direct if one of them is.
    """
    sample = _sample(plan, len(marks), confidence)
    counts = _counts(plan, marks, masked)
    of = {key: _unmasked(sample, found) for key, found in sorted(counts.items())}
    nothing = _unmasked(sample, Counts.empty(plan))
    direct, quasi = of.pop("direct", nothing), of.pop("quasi", nothing)
    return Estimate(len(marks), direct, quasi, of)


def lines_needed(
    plan: Plan,
    reviewed: int,
    limit: float,
    confidence: float = 0.95,
    marks: Mapping[int, Sequence[Mark]] | None = None,
    masked: Mapping[int, Words] | None = None,
) -> int | None:
    """The number of further lines to review until the upper bound is at most ``limit`` unmasked identifiers per
    1,000 lines, if no further one is found; ``None`` if the whole queue is not enough.

    ``marks``, ``masked``: as for ``estimate``, for the direct identifiers that were found; without them none was.
    """
    counts = _counts(plan, marks or {}, masked or {}).get("direct") or Counts.empty(plan)

    def low_enough(read: int) -> bool:
        _, _, high = counts.totals(_sample(plan, read, confidence))[0]
        return 1000 * float(high) / plan.lines <= limit

    reads = range(max(reviewed, 1), len(plan.queue) + 1)
    more = bisect_left(reads, True, key=low_enough)
    return reads[more] - reviewed if more < len(reads) else None


@dataclass
class Counts:
    """Identifiers in the lines read of H strata. The first of each pair is for unmasked ones, the second for masked
    ones."""

    sums: np.ndarray
    """(2, ..., H) sums of the counts of lines."""
    squares: np.ndarray
    """(2, ..., H) sums of the squared counts."""
    holding: np.ndarray
    """(...) number of lines with at least one."""

    @classmethod
    def empty(cls, plan: Plan) -> "Counts":
        """Counts without any identifier."""
        return cls(np.zeros((2, len(plan.strata))), np.zeros((2, len(plan.strata))), np.array(0.0))

    def add(self, stratum: int, unmasked: int, masked: int) -> None:
        """Count a line with one or more."""
        line = np.array([unmasked, masked])
        self.sums[:, stratum] += line
        self.squares[:, stratum] += line**2
        self.holding += 1

    def totals(self, sample: Sample) -> tuple[Ends, Ends]:
        """Totals over the text of unmasked and masked identifiers."""
        # A line that was not read may have several too.
        a_line = np.maximum(self.sums.sum((0, -1)), 1) / np.maximum(self.holding, 1)
        unmasked, masked = (sample.total(self.sums[side], self.squares[side], a_line) for side in (0, 1))
        return unmasked, masked

    def recall(self, unmasked: Ends, masked: Ends) -> Ends:
        """Masked / all, from their totals; the estimate is not a number if both are 0.

        A recall r is in the interval if 0 is in that of r * unmasked - (1 - r) * masked. A lower end that is a count of
        read lines has no slack for an error of the other total, so there the outer ends of both are taken.
        """
        (u, u_low, u_high), (m, m_low, m_high) = unmasked, masked
        u_seen, m_seen = self.sums.sum(-1)

        def end(m_side: np.ndarray, u_side: np.ndarray, sign: int) -> np.ndarray:
            low, high = np.zeros_like(m), np.ones_like(m)
            for _ in range(50):
                r = (low + high) / 2
                above = r * u - (1 - r) * m - sign * np.hypot(r * u_side, (1 - r) * m_side) > 0
                low, high = np.where(above, low, r), np.where(above, r, high)
            return (low + high) / 2

        with np.errstate(invalid="ignore"):
            value, lowest, highest = m / (m + u), m_low / (m_low + u_high), m_high / (m_high + u_low)
        low = np.where(m_low <= m_seen, lowest, end(m - m_low, u_high - u, -1))
        return value, low, np.where(u_low <= u_seen, highest, end(m_high - m, u - u_low, 1))


def _sample(plan: Plan, read: int, confidence: float) -> Sample:
    drawn = np.bincount([stratum for _, stratum in plan.queue[:read]], minlength=len(plan.strata))
    return Sample(np.array([stratum.lines for stratum in plan.strata]), drawn, confidence)


def _counts(plan: Plan, marks: Mapping[int, Sequence[Mark]], masked: Mapping[int, Words]) -> dict[str, Counts]:
    """The counts by ``direct``, ``quasi``, and class."""
    stratum = dict(plan.queue[: len(marks)])
    counts: dict[str, Counts] = {}
    for line, words in marks.items():
        of_line: dict[str, list[bool]] = {}
        for mention in _mentions(words):
            whole = all((word.start, word.end) in masked[line] for word in mention)
            sort = "direct" if any(word.direct for word in mention) else "quasi"
            for key in (sort, mention[0].label):
                of_line.setdefault(key, []).append(whole)
        for key, found in of_line.items():
            counts.setdefault(key, Counts.empty(plan)).add(stratum[line], found.count(False), found.count(True))
    return counts


def _mentions(words: Iterable[Mark]) -> list[list[Mark]]:
    found: list[list[Mark]] = []
    for word in sorted(words, key=lambda word: word.start):
        last = found[-1][-1] if found else None
        if last and last.label == word.label and word.start - last.end <= 1:
            found[-1].append(word)
        else:
            found.append([word])
    return found


def _unmasked(sample: Sample, counts: Counts) -> Unmasked:
    unmasked, masked = counts.totals(sample)
    left, all_found = int(counts.sums[0].sum()), int(counts.sums.sum())
    per_thousand = Interval(*(1000 * float(end / sample.sizes.sum()) for end in unmasked))
    recall = Interval(*map(float, counts.recall(unmasked, masked))) if all_found else None
    return Unmasked(all_found, left, per_thousand, recall)
