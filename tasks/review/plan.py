"""The plan of a review: which lines are read, in which order, and how likely each was to be drawn.

Strata are made of features that are known of every line before anybody reads it. Within a stratum lines are drawn by
simple random sampling without replacement. Strata take turns in a fixed proportion.
"""

import hashlib
import random
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from tasks.audit.clear_text import Words
from tasks.corpora.words import word_spans

LONGEST_QUEUE = 2000
"""Lines that a plan has at most."""
STRATA = {"finding unmasked": 3.0, "name-like word unmasked": 2.0, "finding": 1.5, "rest": 1.0}
"""Names of the strata, and how much more often a line of each is drawn than one of the rest.

- A word stands unmasked that the reference reader finds.
- Else, a word stands unmasked that looks like a name: with a capital letter within a sentence, or letters and digits.
- Else, the reference reader finds a word.
- None of these.
"""
_SENTENCE_END = re.compile(r"[.!?:;…\"“”(]\W*$|^\W*$")


@dataclass(frozen=True, slots=True)
class Stratum:
    """A group of lines that are drawn equally often."""

    name: str
    """Such as ``unmasked name-like word``; no word of the text."""
    lines: int
    """Lines of the text that belong to it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A random order of lines, drawn stratum by stratum.

    The first n entries of the queue are a stratified random sample, whatever n is: within each stratum the lines come
    in random order. So a review can stop after any line and be extended later.
    """

    text: str
    """SHA-256 of the text file (plain UTF-8 bytes)."""
    seed: int
    strata: tuple[Stratum, ...]
    queue: tuple[tuple[int, int], ...]
    """Line number from 0, and index of its stratum, in the order of reading."""

    @property
    def lines(self) -> int:
        """Lines of the whole text."""
        return sum(stratum.lines for stratum in self.strata)


def make_plan(
    lines: Iterable[str],
    masks: Mapping[str, Iterable[Words]],
    reader: Iterable[Words],
    focus: str | None,
    seed: int,
    most: int = LONGEST_QUEUE,
) -> Plan:
    """The plan of a text; memory grows by 8 bytes a line.

    ``masks``: the words that each technique masks, line by line; ``reader``: those that the reference reader finds.
    ``focus``: the technique whose unmasked words decide the strata; ``None``: words that one of the techniques leaves
    unmasked.
    """
    digest = hashlib.sha256()
    members: dict[str, array[int]] = {name: array("q") for name in STRATA}
    chosen = [masks[focus]] if focus is not None else list(masks.values())
    masked = map(frozenset.intersection, *chosen) if chosen else repeat(frozenset[tuple[int, int]]())
    for number, (line, hidden, found) in enumerate(zip(lines, masked, reader, strict=False)):
        digest.update(f"{line}\n".encode())
        members[stratum_of(line, hidden, found)].append(number)
    kept = {name: numbers for name, numbers in members.items() if numbers}
    # One generator for each stratum: a random string is the same on every machine and version of Python.
    drawn = [
        random.Random(f"{seed} {name}").sample(numbers, min(len(numbers), most))
        for name, numbers in kept.items()
    ]
    sizes = [len(numbers) for numbers in kept.values()]
    turns = list(in_turn(sizes, [STRATA[name] * size for name, size in zip(kept, sizes, strict=True)], most))
    strata = tuple(Stratum(name, size) for name, size in zip(kept, sizes, strict=True))
    return Plan(digest.hexdigest(), seed, strata, tuple((drawn[stratum][place], stratum) for stratum, place in turns))


def stratum_of(line: str, masked: Words, found: Words) -> str:
    """The name of a line's stratum."""
    unmasked = [span for span in word_spans(line) if span not in masked]
    finding, name_like, masked_finding, rest = STRATA
    if any(span in found for span in unmasked):
        return finding
    if any(is_name_like(line, *span) for span in unmasked):
        return name_like
    return masked_finding if found else rest


def is_name_like(line: str, start: int, end: int) -> bool:
    """Whether a word has a capital letter within a sentence, or both letters and digits."""
    word = line[start:end]
    if any(map(str.isdigit, word)):
        return True
    return word[0].isupper() and not (len(word) == 1 or _SENTENCE_END.search(line[:start]))


def in_turn(sizes: Sequence[int], shares: Sequence[float], most: int) -> Iterator[tuple[int, int]]:
    """Stratum and place within it, one line at a time: the next is of the stratum with most of its share still to come
    (Adams's method of apportionment, by which each stratum has a line before any has its second in vain)."""
    counts = [0] * len(sizes)
    for _ in range(min(sum(sizes), most)):
        open_strata = [stratum for stratum, size in enumerate(sizes) if counts[stratum] < size]
        chosen = max(open_strata, key=lambda stratum: (not counts[stratum], shares[stratum] / max(counts[stratum], 1)))
        yield chosen, counts[chosen]
        counts[chosen] += 1
