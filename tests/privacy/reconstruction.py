"""An attacker who compares texts: where maskings of one text lie side by side, what they agree on is the text itself.

He knows neither names nor techniques. Texts of as many lines are taken for maskings of one text, and each word of a
line is decided by vote: a substitute differs from fill to fill, what was there stands in every fill of the techniques
that keep it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

AGREEING = 2
"""Texts that must say the same, and more than say anything else, before a word is taken for the real one."""


def rebuilt_lines(texts: Iterable[str]) -> set[str]:
    """Lines of which every word was decided, over all groups of texts that could be maskings of one."""
    groups: defaultdict[int, set[tuple[str, ...]]] = defaultdict(set)
    for text in texts:
        lines = tuple(text.splitlines())
        groups[len(lines)].add(lines)
    found: set[str] = set()
    for group in groups.values():
        for versions in zip(*group, strict=True):
            line = decided(versions)
            if line is not None:
                found.add(line)
    return found


def decided(versions: Iterable[str]) -> str | None:
    """The line behind its versions; ``None`` where a word stays open.

    Versions of the usual number of words speak; a marker that stood for several words makes others.
    """
    by_length: defaultdict[int, list[list[str]]] = defaultdict(list)
    for version in versions:
        words = version.split(" ")
        by_length[len(words)].append(words)
    usual = max(by_length.values(), key=len)
    line = []
    for words in zip(*usual, strict=True):
        (word, votes), *others = Counter(words).most_common(2)
        if votes < AGREEING or (others and others[0][1] == votes):
            return None
        line.append(word)
    return " ".join(line)
