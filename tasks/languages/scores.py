"""How well the languages of words are told: F1 by language, of mixed words, and of switch points.

Words that people labelled with no language of the text are left out. A switch point is a word whose language is not
that of the last word before it in its line that has one; mixed words are passed over, since they have both.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from tasks.audit.figure import Figure, share_figure
from tasks.languages.labelled_words import LabelledWords
from tasks.languages.word_languages import MIXED

SWITCHES = "switch points"


def language_scores(
    gold: Sequence[LabelledWords], found: Sequence[Sequence[str | None]], languages: Sequence[str]
) -> dict[str, Figure]:
    """F1 of each language, of ``mixed`` and of switch points, with intervals over lines; 0.987 and not 98.7.

    F1 is a ratio of sums, 2 TP / (2 TP + FP + FN), and drawn again as one. ``found``: the languages of the same words.
    """
    hits: defaultdict[str, list[int]] = defaultdict(list)
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for line, predicted in zip(gold, found, strict=True):
        both = [(a, b) for a, b in zip(line.languages, predicted, strict=True) if a is not None]
        for language in (*languages, MIXED):
            hits[language].append(2 * sum(a == b == language for a, b in both))
            sizes[language].append(sum((a == language) + (b == language) for a, b in both))
        whole = [(a, b) for a, b in both if a != MIXED]
        changes = [(a[0] != b[0], a[1] != b[1]) for a, b in pairwise(whole)]
        hits[SWITCHES].append(2 * sum(a and b for a, b in changes))
        sizes[SWITCHES].append(sum(a + b for a, b in changes))
    return {name: share_figure(hits[name], sizes[name], "") for name in (*languages, MIXED, SWITCHES)}
