"""Scores of language identification: F1 by language, of mixed words and of switch points; and names.

F1 leaves out words that people labelled as names or with no language of the text. A word of a language that is found as
a name counts as missed. A switch point is a word whose language differs from the last word before it in its line that
has one. Mixed words have both languages and are skipped, as are words found as names or without a language.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from tasks.audit.figure import Figure, share_figure
from tasks.languages.labelled_words import LabelledWords
from tasks.languages.word_languages import MIXED, NAME

SWITCHES = "switch points"
OF_NAMES = ("precision", "recall")


def language_scores(
    gold: Sequence[LabelledWords], found: Sequence[Sequence[str | None]], languages: Sequence[str]
) -> dict[str, Figure]:
    """F1 of each language, of ``mixed`` and of switch points as a share (0.987), with intervals over lines.
    Precision and recall of names are added where people labelled some.

    F1 is a ratio of sums, 2 TP / (2 TP + FP + FN), and resampled as one. ``found``: the languages of the same words.
    """
    hits: defaultdict[str, list[int]] = defaultdict(list)
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for line, predicted in zip(gold, found, strict=True):
        for name, sides in zip(OF_NAMES, ((predicted, line.languages), (line.languages, predicted)), strict=True):
            hits[name].append(sum(a == b == NAME for a, b in zip(*sides, strict=True)))
            sizes[name].append(sum(a == NAME for a in sides[0]))
        both = [(a, b) for a, b in zip(line.languages, predicted, strict=True) if a is not None and a != NAME]
        for language in (*languages, MIXED):
            hits[language].append(2 * sum(a == b == language for a, b in both))
            sizes[language].append(sum((a == language) + (b == language) for a, b in both))
        whole = _carried([(a, b) for a, b in both if a != MIXED], languages)
        changes = [(a[0] != b[0], a[1] != b[1]) for a, b in pairwise(whole)]
        hits[SWITCHES].append(2 * sum(a and b for a, b in changes))
        sizes[SWITCHES].append(sum(a + b for a, b in changes))
    marked = OF_NAMES if sum(sizes[OF_NAMES[1]]) else ()
    return {name: share_figure(hits[name], sizes[name], "") for name in (*languages, MIXED, SWITCHES, *marked)}


def _carried(words: Sequence[tuple[str, str | None]], languages: Sequence[str]) -> list[tuple[str, str | None]]:
    """Give a word found without a language the language of the word before it."""
    carried, last = [], next((found for _, found in words if found in languages), None)
    for language, found in words:
        last = found if found in languages else last
        carried.append((language, last))
    return carried
