"""How often a fill happens to be the very word that was masked, beside what guessing by frequency would hit.

A filling method that hits more than the guess follows the private words. It is not what an attacker gets, who has the
filled text and a model of his own, and finds more. Reads the sidecar, so it runs where the private text may be.

Besides the whole, places are counted by the technique, detector or rule that asked for the mask, by the class of what
was masked, and by how frequent the masked word is in generic text (its rank among the word counts, by powers of ten):
rare words tell most. A place of merged markers or of several words counts in each group that one of its words belongs
to, and in that group it is restored if its fill is one of the group's words; so groups can sum to more than the whole.
Where a corpus is filled several times (``copies``), a place counts once, and as restored where one copy or more has its
word: that is what those see who are given all of them.

What is measured is rounded (``Rounding``), since exact sums tell words: of two reports that differ by a line the
difference is that line's word, its group, and whether the fill gives it back. Groups of fewer than ``FEWEST_PLACES``
are left out, and what guessing would hit is said of the whole alone.

Intervals are Wilson's score interval at 95 %, which takes places as independent; those of a conversation are not quite.
They hold those of all counts that may have been rounded so. The guess has none: it is an expectation.
"""

import hmac
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from tasks.corpora.words import fold
from tasks.filling.choice import original_words, spans_of_slots
from tasks.filling.masked_sentence import MaskedSentence

CONFIDENCE = 0.95
FEWEST_PLACES = 20
"""A smaller group is left out of a report."""
_STEP = 5
"""Sums are rounded to steps of at least so many times what one place can add."""
UNRANKED = "unranked"
"""Words that the word counts do not hold."""
_OVERALL, _SOURCE, _CLASS, _FREQUENCY = "overall", "by_source", "by_class", "by_frequency"


class Rounding:
    """Rounds sums to three digits and to steps of several places, up or down by chance, right on average.

    Were it always down, a sum that passes a step would say what the place before it added. Chance comes from a secret
    and from all that was counted: the same counts are rounded in the same way, so that nothing is averaged away by
    counting again, and counts that differ at all in another way.
    """

    def __init__(self, key: bytes, counted: object) -> None:
        digest = hmac.digest(key, json.dumps(counted, sort_keys=True).encode(), "sha256")
        self._random = random.Random(int.from_bytes(digest))

    def __call__(self, value: float, most: float = 1) -> float:
        """``most``: what one place can add to the value at most."""
        if value <= 0:
            return 0
        step = max(_STEP * most, 10.0 ** (math.floor(math.log10(value)) - 2))
        return math.floor(value / step + self._random.random()) * step


@dataclass(frozen=True)
class GenericWords:
    """What word counts say of a masked word."""

    probabilities: Mapping[str, float]
    """Folded word off the list of kept words to the chance that a draw by frequency gives it."""
    ranks: Mapping[str, int]
    """Folded word to its rank, from 1."""


@dataclass
class RestorationCount:
    """Places of one group."""

    places: int = 0
    restored: int = 0
    expected: float = 0.0
    """Places that drawing words off the list by frequency would restore."""
    seen: set[tuple[int, int]] = field(default_factory=set)
    """The restored ones, by line and slot, of a corpus that is filled several times; else nothing."""

    def add(self, other: "RestorationCount") -> None:
        """Count the places of another count too."""
        self.places += other.places
        self.restored += other.restored - len(self.seen & other.seen)
        self.expected += other.expected
        self.seen |= other.seen


class Restoration:
    """Counts over slots. A slot is restored if its fill, folded, is one of the words that its markers replaced."""

    def __init__(self, generic: GenericWords | None, copies: int = 1) -> None:
        """Without ``generic`` nothing is expected and there are no groups by frequency. ``copies``: how often the
        corpus is filled."""
        self._generic = generic
        self._copies = copies
        self._most = None if generic is None else self._in_any_copy(max(generic.probabilities.values(), default=0.0))
        self._groups: dict[tuple[str, str], RestorationCount] = {(_OVERALL, ""): RestorationCount()}

    def add(self, sentence: MaskedSentence, words: Sequence[str], lines_before: int = 0) -> None:
        """Count the fills of one line, which has its record of the sidecar (``choice.with_spans``).

        ``lines_before``: how many lines of earlier copies stand before its own copy.
        """
        for slot, (spans, word) in enumerate(zip(spans_of_slots(sentence), words, strict=True)):
            folded = fold(word)
            groups: dict[tuple[str, str], set[str]] = {(_OVERALL, ""): set()}
            for span in spans:
                originals = original_words(span)
                groups[_OVERALL, ""] |= originals
                groups.setdefault((_SOURCE, span.source), set()).update(originals)
                groups.setdefault((_CLASS, span.label), set()).update(originals)
                if self._generic is not None:
                    for original in originals:
                        bucket = frequency_bucket(self._generic.ranks.get(original))
                        groups.setdefault((_FREQUENCY, bucket), set()).add(original)
            for group, originals in groups.items():
                count = self._groups.setdefault(group, RestorationCount())
                if folded in originals:
                    seen = {(sentence.number - lines_before, slot)} if self._copies > 1 else set()
                    count.add(RestorationCount(restored=1, seen=seen))
                if lines_before:
                    continue
                count.places += 1
                if self._generic is not None:
                    # Sorted: the last digits of a sum depend on its order, and a set has none.
                    guessed = sum(self._generic.probabilities.get(word, 0.0) for word in sorted(originals))
                    count.expected += self._in_any_copy(guessed)

    def _in_any_copy(self, chance: float) -> float:
        """The chance that one copy or more hits what one hits with this chance."""
        return chance if self._copies == 1 else 1 - (1 - chance) ** self._copies

    def as_plain(self) -> dict[str, Any]:
        """The counts as plain values; ``add_plain`` reads them back."""
        return {
            "most_expected": self._most,
            "groups": [
                [*group, count.places, count.restored, count.expected, sorted(count.seen)]
                for group, count in self._groups.items()
            ],
        }

    def add_plain(self, plain: Mapping[str, Any]) -> None:
        """Count what another object counted, from its ``as_plain``."""
        if plain["most_expected"] is not None:
            self._most = max(self._most or 0.0, plain["most_expected"])
        for dimension, name, places, restored, expected, seen in plain["groups"]:
            count = self._groups.setdefault((dimension, name), RestorationCount())
            count.add(RestorationCount(places, restored, expected, {(line, slot) for line, slot in seen}))

    def measured(self, rounded: Rounding) -> dict[str, Any]:
        """What the report says: the whole, what guessing would hit of it, and the groups by what asked for the mask, by
        class and by frequency, each with counts, rate and interval."""
        overall = self._groups[_OVERALL, ""]
        whole = _row(overall, rounded)
        known = self._most is not None and whole["rate"] is not None
        expected = rounded(overall.expected, self._most or 0.0) if known else None
        whole["expected_by_frequency"] = None if expected is None else _three_digits(expected / whole["places"])
        rows: dict[str, Any] = {
            "interval": "Wilson score interval, 95 %, places taken as independent",
            _OVERALL: whole,
        }
        left_out = 0
        for dimension in (_SOURCE, _CLASS, _FREQUENCY):
            names = sorted((name for kind, name in self._groups if kind == dimension), key=_order)
            of_groups = {name: _row(self._groups[dimension, name], rounded) for name in names}
            rows[dimension] = {name: row for name, row in of_groups.items() if row["rate"] is not None}
            left_out += len(of_groups) - len(rows[dimension])
        if self._most is None:
            rows[_FREQUENCY] = None
        return rows | {"groups_left_out": left_out}


def _row(count: RestorationCount, rounded: Rounding) -> dict[str, Any]:
    """A group's row; without a rate where it has too few places."""
    places, restored = round(rounded(count.places)), round(rounded(count.restored))
    if places < FEWEST_PLACES:
        return {"places": places, "restored": None, "rate": None, "rate_ci": None}
    restored = min(places, restored)
    # What was rounded may have been any of these.
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
    """The power of ten that a rank lies in: ``1-10``, ``11-100``, ``101-1000`` and so on."""
    if rank is None:
        return UNRANKED
    upper = 10
    while rank > upper:
        upper *= 10
    return f"{upper // 10 + 1 if upper > 10 else 1}-{upper}"


def _order(name: str) -> tuple[float, str]:
    """Buckets by rank, all other names by the alphabet; what is unranked last."""
    lower, _, upper = name.partition("-")
    if lower.isdecimal() and upper.isdecimal():
        return int(upper), name
    return math.inf if name == UNRANKED else 0, name


def wilson_interval(successes: int, trials: int, confidence: float = CONFIDENCE) -> list[float] | None:
    """Wilson's score interval of a share (Wilson 1927, without continuity correction); ``None`` of nothing.

    With z = 1.96 at 95 %: ``(p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n)``. Unlike the normal
    interval it is of use where hardly anything was restored.
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
