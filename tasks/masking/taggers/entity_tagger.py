"""The entity tagger (paper 3.1, ``entityTagger``): mask what a named-entity model tags.

A word that an entity touches is masked whole; an entity of several words gives one marker per word, as in the
paper, where the tokens are masked. Merging neighbours is the filler's matter.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tasks.corpora.words import word_spans
from tasks.errors import ModelError
from tasks.masking.settings import EntityTagger
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.tagger import EntitySpan, Tagger, load_tagger
from tasks.masking.technique import Finding, Technique


class TaggedEntities(Technique):
    """Mask the entities of a tagger by the classes of their types."""

    def __init__(self, tagger: Tagger, labels: dict[str, str | None] | None = None) -> None:
        """``labels``: entity types to classes, ``None`` for the mapping that ships; errors as ``classes_in_force``."""
        self._tagger = tagger
        self._classes = classes_in_force(tagger.entity_types, labels, tagger.name)
        self._entities: Counter[str] = Counter()
        self._without_word = self._overlapping = 0

    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """The words that an entity of a masked type touches; the longest entity gives the class of a word."""
        for number, (line, spans) in enumerate(self._tagger.tag(lines), start=1):
            yield line, self._words_touched(line, spans, number) if spans else []

    def _words_touched(self, line: str, spans: list[EntitySpan], number: int) -> list[Finding]:
        self._check(line, spans, number)
        self._entities.update(span.label for span in spans)
        words = word_spans(line)
        starts, ends = [start for start, _ in words], [end for _, end in words]
        labels: dict[int, str] = {}
        for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
            label = self._classes[span.label]
            if label is None:
                continue
            touched = range(bisect_right(ends, span.start), bisect_left(starts, span.end))
            self._without_word += not touched
            self._overlapping += any(index in labels for index in touched)
            for index in touched:
                labels.setdefault(index, label)
        return [Finding(*words[index], labels[index], self._tagger.name) for index in sorted(labels)]

    def _check(self, line: str, spans: list[EntitySpan], number: int) -> None:
        for span in spans:
            if not 0 <= span.start < span.end <= len(line):
                raise ModelError(
                    f"{self._tagger.name}: line {number}: the tagger returned a span from {span.start} to {span.end}, "
                    f"outside the line's {len(line)} characters; the model or its tokenizer is damaged"
                )
            if span.label not in self._classes:
                raise ModelError(
                    f"{self._tagger.name}: line {number}: the tagger returned the type {span.label!r}, which is not "
                    f"among those it declares: {', '.join(self._classes)}"
                )

    def in_force(self) -> dict[str, Any]:
        """Entity types and their classes, and how many entities of each type there were."""
        return {
            "entity_types": self._classes,
            "entities": {name: self._entities[name] for name in self._classes},
            "entities_without_word": self._without_word,
            "overlapping_entities": self._overlapping,
        }


def entity_tagger(settings: EntityTagger, threads: int) -> TaggedEntities:
    """The technique that the settings describe; loads the model."""
    return TaggedEntities(load_tagger(settings.tagger, threads), settings.labels)
