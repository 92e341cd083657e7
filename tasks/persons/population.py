"""How many people of a population are expected to share the quasi-identifiers that were inferred about a person.

The number is the size of the population times the share of each value, as if the attributes were independent. Real
attributes are not: of people of one town, more have its usual occupation. So it shows the order of magnitude alone.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.persons.facts import DIRECT, Fact

_COLUMNS = ["attribute", "value", "share"]
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Population:
    """A number of people, and the shares of values."""

    people: int
    shares: Mapping[tuple[str, str], float]
    """By attribute and folded value."""

    def expected(self, values: Iterable[tuple[str, str]]) -> float:
        """The expected number of people with these values; values without a share are left out."""
        return self.people * prod(self.shares.get(value, 1.0) for value in values)

    def measured(self, persons: Iterable[Iterable[tuple[str, str]]]) -> dict[str, Any]:
        """The median of the expected numbers of all persons, the persons with less than 1, and values left out."""
        inferred = [list(values) for values in persons]
        numbers = [self.expected(values) for values in inferred]
        return {
            "population": self.people,
            "population_median": median(numbers),
            "population_below_1": sum(number < 1 for number in numbers),
            "population_values": sum(map(len, inferred)),
            "population_values_left_out": sum(value not in self.shares for values in inferred for value in values),
        }

    def lacking(self, facts: Iterable[Fact]) -> list[str]:
        """Quasi-identifying attributes of facts that have no share at all."""
        known = {attribute for attribute, _ in self.shares}
        return sorted({fact.attribute for fact in facts} - known - set(DIRECT))


def read_population(path: str, people: int) -> Population:
    """Shares from a CSV file; ``CorpusError`` names the first bad line, without its text."""
    shares: dict[tuple[str, str], float] = {}
    try:
        rows = list(csv.reader(Path(path).read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CorpusError(f"marginals {path!r} cannot be read ({type(error).__name__}); give a CSV in UTF-8") from None
    if not rows or rows[0] != _COLUMNS:
        raise CorpusError(f"marginals {path!r}: line 1 is not {','.join(_COLUMNS)!r}; write it above the values")
    for number, row in enumerate(rows[1:], start=2):
        problem = _problem(row, shares)
        if problem:
            raise CorpusError(f"marginals {path!r}: line {number} {problem}; correct the line")
        shares[row[0], fold(row[1])] = float(row[2])
    for attribute in dict.fromkeys(attribute for attribute, _ in shares):
        total = sum(share for (name, _), share in shares.items() if name == attribute)
        if total > 1 + _ROUNDING:
            raise CorpusError(
                f"marginals {path!r}: the shares of {attribute!r} add up to {total:.3f}; give shares of 1 at most"
            )
    return Population(people, shares)


def _problem(row: list[str], known: Mapping[tuple[str, str], float]) -> str:
    if len(row) != len(_COLUMNS):
        return f"has {len(row)} columns"
    try:
        share = float(row[2])
    except ValueError:
        return "has a share that is no number"
    if not 0 < share <= 1:
        return "has a share that is not above 0 and at most 1"
    return "has a value that an earlier line has" if (row[0], fold(row[1])) in known else ""
