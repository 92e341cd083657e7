"""The plan of a review: the lines to read, their order, and their probabilities of being drawn.

Strata are made of features that are known of every line before the review. Within a stratum lines are drawn by simple
random sampling without replacement. Strata take turns in a fixed proportion.
"""

import hashlib
import random
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tasks.audit.clear_text import Words
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.words import word_spans
from tasks.filling.aligned_fills import side_by_side

LONGEST_QUEUE = 2000
"""Most lines of a plan."""
STRATA = {
    "many findings unmasked": 4.0,
    "direct finding unmasked that most mask": 3.0,
    "direct finding unmasked": 1.5,
    "other finding unmasked": 1.0,
    "name-like word unmasked": 1.0,
    "direct finding masked": 1.0,
    "other finding masked": 1.0,
    "no finding": 1.0,
}
"""Names of the strata, and the rate at which their lines are drawn, relative to lines without a finding.

A line belongs to the first stratum that it fits. Findings are words that the reference reader marks; ``many`` are 10 or
more, such as a list of names. ``that most mask``: most of the other techniques do. Few strata are drawn more often than
the rest: without a find, the bound is that of the stratum that is read least.
"""
_MANY = 10
_SENTENCE_END = re.compile(r"[.!?:;…\"“”(]\W*$|^\W*$")


@dataclass(frozen=True, slots=True)
class Stratum:
    """A group of lines that are drawn equally often."""

    name: str
    """Name, such as ``name-like word unmasked``; no word of the text."""
    lines: int
    """Number of its lines in the text."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A random order of lines, drawn stratum by stratum.

    The first n entries of the queue are a stratified random sample, for any n: within each stratum the lines are in
    random order. So a review can stop after any line and be extended later.
    """

    text: str
    """SHA-256 of the text file (plain UTF-8 bytes)."""
    seed: int
    strata: tuple[Stratum, ...]
    queue: tuple[tuple[int, int], ...]
    """Line number from 0, and index of its stratum, in the order of reading."""

    @property
    def lines(self) -> int:
        """The number of lines of the whole text."""
        return sum(stratum.lines for stratum in self.strata)


def make_plan(
    lines: Iterable[str],
    masks: Mapping[str, Iterable[Words]],
    reader: Iterable[Mapping[tuple[int, int], str]],
    focus: str,
    seed: int,
    most: int = LONGEST_QUEUE,
) -> Plan:
    """The plan of a text; memory grows by 8 bytes a line.

    ``masks``: the words that each technique masks, line by line; ``reader``: the words that the reference reader finds,
    with their classes. ``focus``: the technique whose unmasked words decide the strata. Equal arguments give an equal
    plan on every machine. Raises ``CorpusError`` if the numbers of lines differ.
    """
    digest = hashlib.sha256()
    members: dict[str, array[int]] = {name: array("q") for name in STRATA}
    for number, (line, found, *masked_by) in enumerate(side_by_side(lines, reader, *masks.values())):
        digest.update(f"{line}\n".encode())
        others: dict[str, Words] = dict(zip(masks, masked_by, strict=True))
        masked = others.pop(focus)
        members[stratum_of(line, masked, found, list(others.values()))].append(number)
    kept = {name: numbers for name, numbers in members.items() if numbers}
    drawn = [random.Random(f"{seed} {name}").sample(numbers, min(len(numbers), most)) for name, numbers in kept.items()]
    sizes = [len(numbers) for numbers in kept.values()]
    turns = list(in_turn(sizes, [STRATA[name] * size for name, size in zip(kept, sizes, strict=True)], most))
    strata = tuple(Stratum(name, size) for name, size in zip(kept, sizes, strict=True))
    return Plan(digest.hexdigest(), seed, strata, tuple((drawn[stratum][place], stratum) for stratum, place in turns))


def stratum_of(line: str, masked: Words, found: Mapping[tuple[int, int], str], others: Sequence[Words]) -> str:
    """The name of a line's stratum. ``found``: the reference reader's words with their classes; ``others``:
    words that other techniques mask."""
    many, mostly_masked, direct_unmasked, other_unmasked, name_like, direct_masked, other_masked, none = STRATA
    unmasked = [span for span in word_spans(line) if span not in masked]
    findings = [span for span in unmasked if span in found]
    direct = [span for span in findings if found[span] in DIRECT_IDENTIFIERS]
    if len(findings) >= _MANY:
        return many
    if any(2 * sum(span in words for words in others) > len(others) for span in direct):
        return mostly_masked
    if findings:
        return direct_unmasked if direct else other_unmasked
    if any(is_name_like(line, *span) for span in unmasked):
        return name_like
    if found:
        return other_masked if DIRECT_IDENTIFIERS.isdisjoint(found.values()) else direct_masked
    return none


def is_name_like(line: str, start: int, end: int) -> bool:
    """Whether a word has a digit, or a capital letter within a sentence."""
    word = line[start:end]
    if any(map(str.isdigit, word)):
        return True
    return word[0].isupper() and not (len(word) == 1 or _SENTENCE_END.search(line[:start]))


def in_turn(sizes: Sequence[int], shares: Sequence[float], most: int) -> Iterator[tuple[int, int]]:
    """Stratum and index within it, line by line: each stratum has one line, then the one with most share for each
    line that it has (Adams's method of apportionment)."""
    counts = [0] * len(sizes)
    for _ in range(min(sum(sizes), most)):
        open_strata = [stratum for stratum, size in enumerate(sizes) if counts[stratum] < size]
        chosen = max(open_strata, key=lambda stratum: (not counts[stratum], shares[stratum] / max(counts[stratum], 1)))
        yield chosen, counts[chosen]
        counts[chosen] += 1
