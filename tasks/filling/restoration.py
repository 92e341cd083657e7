"""Restoration: share of fills that are the masked word (exact match), compared with a guess by frequency.

This is no attack: an attacker has the filled text and his own model, and recovers more. Places are counted in total
and in groups: what masked, the class, and the frequency of the masked word in generic text. A place of several words
counts in the group of each. In a corpus with several ``copies``, a place is restored if any copy has its word.

Figures are rounded (``Rounding``), since two exact reports that differ by one line would reveal its word. Groups of
fewer than ``FEWEST_PLACES`` are left out. Intervals are Wilson score intervals at 95 %, for independent places. They
cover the intervals of all counts that round to the same number.
"""

import hmac
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold
from tasks.filling.masked_sentence import MaskedSentence, original_words, spans_of_slots

CONFIDENCE = 0.95
FEWEST_PLACES = 20
"""Minimum size of a group in a report."""
_STEP = 5
"""Minimum rounding step of sums, as a multiple of the largest contribution of one place."""
UNRANKED = "unranked"
"""Group of words that the word counts lack."""
_OVERALL, _SOURCE, _CLASS, _FREQUENCY = "overall", "by_source", "by_class", "by_frequency"


class Rounding:
    """Unbiased random rounding of sums to three digits and to steps of several places.

    If it always rounded down, a sum that crosses a step would reveal the contribution of one place. The randomness
    comes from a secret and all counts. So equal counts are rounded equally, and repetition does not average the
    rounding away. Different counts are rounded independently.
    """

    def __init__(self, key: bytes, counted: object) -> None:
        digest = hmac.digest(key, json.dumps(counted, sort_keys=True).encode(), "sha256")
        self._random = random.Random(int.from_bytes(digest))

    def __call__(self, value: float, most: float = 1) -> float:
        """The rounded value; ``most``: largest contribution of one place."""
        if value <= 0:
            return 0
        step = max(_STEP * most, 10.0 ** (math.floor(math.log10(value)) - 2))
        return math.floor(value / step + self._random.random()) * step


@dataclass(frozen=True)
class GenericWords:
    """Generic frequencies of masked words."""

    probabilities: Mapping[str, float]
    """From folded word to its probability in a draw by frequency, for words not on the list of never-masked words."""
    ranks: Mapping[str, int]
    """From folded word to its rank, from 1."""


@dataclass
class _Count:
    """Counts of places of one group."""

    places: int = 0
    restored: int = 0
    expected: float = 0.0
    """Expected number of places that a draw by frequency would restore."""
    seen: set[tuple[int, int]] = field(default_factory=set)
    """Restored places by line and slot, for a corpus with several copies; otherwise empty."""

    def add(self, other: "_Count") -> None:
        self.places += other.places
        self.restored += other.restored - len(self.seen & other.seen)
        self.expected += other.expected
        self.seen |= other.seen


class Restoration:
    """Counts over slots. A slot is restored if its folded fill is one of its masked words."""

    def __init__(self, generic: GenericWords | None, copies: int = 1) -> None:
        """``generic``: ``None`` for no expectation and no groups by frequency. ``copies``: number of fills of the
        corpus."""
        self._generic, self._copies = generic, copies
        self._most = None if generic is None else self._in_any_copy(max(generic.probabilities.values(), default=0.0))
        self._groups = {(_OVERALL, ""): _Count()}

    def add(self, sentences: Sequence[MaskedSentence], words: Sequence[Sequence[str]], lines_before: int = 0) -> None:
        """Count the fills of some lines with their spans of the sidecar (``with_spans``).

        ``lines_before``: number of lines in earlier copies.
        """
        # Sum by parts, since the last digits of a sum depend on its order.
        part: dict[tuple[str, str], _Count] = {}
        for sentence, its_words in zip(sentences, words, strict=True):
            for slot, (spans, word) in enumerate(zip(spans_of_slots(sentence), its_words, strict=True)):
                for group, originals in self._groups_of(spans).items():
                    count = part.setdefault(group, _Count())
                    if fold(word) in originals:
                        count.restored += 1
                        if self._copies > 1:
                            count.seen.add((sentence.number - lines_before, slot))
                    if not lines_before:
                        count.places += 1
                        if self._generic is not None:
                            known = self._generic.probabilities
                            guessed = sum(known.get(original, 0.0) for original in sorted(originals))
                            count.expected += self._in_any_copy(guessed)
        for group, count in part.items():
            self._groups.setdefault(group, _Count()).add(count)

    def _groups_of(self, spans: Sequence[MaskedSpan]) -> dict[tuple[str, str], set[str]]:
        """The masked words of a place in each of its groups."""
        groups: dict[tuple[str, str], set[str]] = {(_OVERALL, ""): set()}
        for span in spans:
            originals = original_words(span)
            for group in ((_OVERALL, ""), (_SOURCE, span.source), (_CLASS, span.label)):
                groups.setdefault(group, set()).update(originals)
            if self._generic is not None:
                for original in originals:
                    bucket = frequency_bucket(self._generic.ranks.get(original))
                    groups.setdefault((_FREQUENCY, bucket), set()).add(original)
        return groups

    def _in_any_copy(self, chance: float) -> float:
        """Probability that at least one copy has a word that a single one has with probability ``chance``."""
        return chance if self._copies == 1 else 1 - (1 - chance) ** self._copies

    def counted(self) -> dict[str, Any]:
        """All counts without rounding."""
        return {
            "most_expected": self._most,
            "groups": [
                [*group, count.places, count.restored, count.expected, sorted(count.seen)]
                for group, count in self._groups.items()
            ],
        }

    def measured(self, rounded: Rounding) -> dict[str, Any]:
        """Figures for the report: the total with the guess by frequency, and the groups by source, class and frequency.
        Each has counts, rate and interval."""
        overall = self._groups[_OVERALL, ""]
        whole = _row(overall, rounded)
        known = self._most is not None and whole["rate"] is not None
        expected = rounded(overall.expected, self._most or 0.0) if known else None
        whole["expected_by_frequency"] = None if expected is None else _three_digits(expected / whole["places"])
        rows: dict[str, Any] = {"interval": "Wilson score interval, 95 %, places taken as independent", _OVERALL: whole}
        left_out = 0
        for dimension in (_SOURCE, _CLASS, _FREQUENCY):
            names = sorted((name for kind, name in self._groups if kind == dimension), key=_order)
            of_groups = {name: _row(self._groups[dimension, name], rounded) for name in names}
            rows[dimension] = {name: row for name, row in of_groups.items() if row["rate"] is not None}
            left_out += len(of_groups) - len(rows[dimension])
        if self._most is None:
            rows[_FREQUENCY] = None
        return rows | {"groups_left_out": left_out}


def _row(count: _Count, rounded: Rounding) -> dict[str, Any]:
    """Row of a group; without a rate if it has too few places."""
    places, restored = round(rounded(count.places)), round(rounded(count.restored))
    if places < FEWEST_PLACES:
        return {"places": places, "restored": None, "rate": None, "rate_ci": None}
    restored = min(places, restored)
    # The interval covers all counts that may have been rounded to this one.
    low = wilson_interval(max(0, restored - _STEP), places)
    high = wilson_interval(min(places, restored + _STEP), places)
    return {
        "places": places,
        "restored": restored,
        "rate": _three_digits(restored / places),
        "rate_ci": [_three_digits(low[0]), _three_digits(high[1])] if low and high else None,
    }


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def frequency_bucket(rank: int | None) -> str:
    """Range of a rank by powers of ten: ``1-10``, ``11-100``, ``101-1000`` and so on."""
    if rank is None:
        return UNRANKED
    upper = 10
    while rank > upper:
        upper *= 10
    return f"{upper // 10 + 1 if upper > 10 else 1}-{upper}"


def _order(name: str) -> tuple[float, str]:
    """Sort key: buckets by rank, other names by the alphabet, ``UNRANKED`` last."""
    lower, _, upper = name.partition("-")
    if lower.isdecimal() and upper.isdecimal():
        return int(upper), name
    return math.inf if name == UNRANKED else 0, name


def wilson_interval(successes: int, trials: int, confidence: float = CONFIDENCE) -> list[float] | None:
    """Wilson score interval of a share (Wilson 1927, without continuity correction); ``None`` without trials.

    With z = 1.96 at 95 %: ``(p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n)``. Unlike the normal interval, it
    is valid for shares near 0.
    """
    if not trials:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == trials else (centre + half) / scale
    return [low, high]
