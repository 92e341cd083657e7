"""The reference reader's counts, corrected for its precision and recall on other kinds of text (docs/audit.md).

The reader is the technique ``every_tagger``. With precision p and recall r, T mentions found and F of them unmasked by
a technique, F·p + T·p·(1-r)/r identifiers are unmasked: those that the reader missed all count, as a precaution. The
technique's recall is r·(1-F/T). p and r are unknown on the user's text. Several kinds of text on which no shipped model
was tuned give several values (``reader_accuracy.json``, of ``benchmarks/reference_reader.py``). The estimate is their
median, its ends are the lowest and the highest: a range over kinds of text, and no confidence interval.
"""

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple, TypeVar

from tasks.audit.clear_text import Words
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.sidecar import MaskedSpan
from tasks.masking.technique import Finding
from tasks.review.estimate import Interval, Unmasked

ACCURACY = Path(__file__).parent / "reader_accuracy.json"
Sort = Literal["direct", "quasi"]
Word = TypeVar("Word", MaskedSpan, Finding)
"""A word with its class: of a sidecar, or of a technique's findings."""


class Accuracy(NamedTuple):
    """Precision and recall of the reader on one kind of text."""

    precision: float
    recall: float


@cache
def accuracies(sort: Sort) -> tuple[Accuracy, ...]:
    """One for each kind of text on which no shipped model was tuned: for this kind of identifier if that was
    measured, else for words."""
    kinds = [kind for kind in json.loads(ACCURACY.read_text(encoding="utf-8"))["kinds"] if kind["unseen"]]
    measured = [kind.get(sort, kind["words"]) for kind in kinds]
    return tuple(Accuracy(found["precision"], found["recall"]) for found in measured)


def corrected(found: int, unmasked: int, lines: int, kinds: tuple[Accuracy, ...]) -> Unmasked:
    """The unmasked identifiers of a text with ``lines`` lines (1 or more), in which the reader finds ``found``
    mentions, ``unmasked`` of them not masked whole."""
    missed = [found * kind.precision * (1 - kind.recall) / kind.recall for kind in kinds]
    left = [1000 * (unmasked * kind.precision + more) / lines for kind, more in zip(kinds, missed, strict=True)]
    recalls = [kind.recall * (1 - unmasked / found) for kind in kinds] if found else []
    return Unmasked(found, unmasked, _range(left), _range(recalls) if recalls else None)


def mentions(line: str, words: Iterable[Word]) -> list[list[Word]]:
    """Runs of labelled words, in order: neighbours of one class with only white space between them are one mention."""
    found: list[list[Word]] = []
    for word in words:
        last = found[-1][-1] if found else None
        if last and last.label == word.label and not line[last.end : word.start].strip():
            found[-1].append(word)
        else:
            found.append([word])
    return found


class ReadText:
    """The reader's findings in a text, and the unmasked ones of one technique."""

    def __init__(self) -> None:
        self.lines = 0
        self.found, self.unmasked = Counter[str](), Counter[str]()
        """Mentions by class."""

    def add(self, line: str, words: Iterable[Word], masked: Words) -> None:
        """Count a line; ``words``: the reader's findings, in order."""
        self.lines += 1
        for mention in mentions(line, words):
            label = mention[0].label
            self.found[label] += 1
            self.unmasked[label] += any((word.start, word.end) not in masked for word in mention)

    def of_sort(self, sort: Sort) -> Unmasked:
        """The direct or the quasi-identifiers."""
        return self._corrected([label for label in self.found if _sort(label) == sort], sort)

    def by_class(self) -> dict[str, Unmasked]:
        """Each class that was found, corrected like its kind."""
        return {label: self._corrected([label], _sort(label)) for label in sorted(self.found)}

    def _corrected(self, labels: Iterable[str], sort: Sort) -> Unmasked:
        found, unmasked = (sum(counts[label] for label in labels) for counts in (self.found, self.unmasked))
        return corrected(found, unmasked, self.lines, accuracies(sort))


def _sort(label: str) -> Sort:
    return "direct" if label in DIRECT_IDENTIFIERS else "quasi"


def basis(of_reader: bool) -> str:
    """One line on the basis of the counts; ``of_reader``: for the technique that is the reader itself."""
    kinds = accuracies("direct")
    precisions, recalls = zip(*kinds, strict=True)
    recall = f"recall ({min(recalls):.2f} to {max(recalls):.2f})"
    if of_reader:
        return f"it is the reference reader: left are those that it misses, by its {recall} on {len(kinds)} other texts"
    precision = f"precision ({min(precisions):.2f} to {max(precisions):.2f})"
    return f"counts of the reference reader, corrected for its {precision} and {recall} on {len(kinds)} other texts"


def _range(values: list[float]) -> Interval:
    return Interval(median(values), min(values), max(values))
