"""The entity tagger (paper 3.1, ``entityTagger``): mask the words that a named-entity model tags.

A word that an entity touches is masked whole. An entity of several words gives one marker per word, as in the paper,
which masks tokens. Numbers and times in words that identify nobody stay unmasked by default
(``tasks.masking.taggers.spelled_numbers``).

A tagger must return every line that it reads, with spans inside the line and of declared types. Anything else is an
error that names the line, since to continue would leave private words unmasked.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Literal

from tasks.corpora.plain_text import plain_view
from tasks.corpora.words import word_spans
from tasks.errors import ModelError
from tasks.masking.settings import SpacyTagger, TaggerSettings, TechniqueSettings
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.spelled_numbers import is_harmless
from tasks.masking.taggers.tagger import EntitySpan, Tagger
from tasks.masking.technique import Finding, KeptWord, Technique

_MODELS = {
    "spacy": "spacy_tagger.SpacyModel",
    "transformers": "transformers_tagger.TransformersModel",
    "gliner": "gliner_tagger.GlinerModel",
    "presidio": "presidio_tagger.PresidioModel",
    "crf": "crf_tagger.CrfModel",
    "word_classifier": "word_classifier.WordClassifier",
    "quasi_identifiers": "quasi_identifiers.QuasiIdentifiers",
}
"""The module and class of each kind of tagger; a module is imported when its tagger is loaded."""


def load_tagger(settings: TaggerSettings, threads: int) -> Tagger:
    """Load the model that the settings name; ``ModelError`` where it cannot be found or used."""
    module, _, name = _MODELS[settings.kind].partition(".")
    tagger: Tagger = getattr(import_module(f"tasks.masking.taggers.{module}"), name)(settings, threads)
    return tagger


_MAY_BE_HARMLESS = ("NUMBER", "DATE")
_SELDOM = ("entities_without_word", "overlapping_entities", "spelled_numbers_unmasked")


class EntityTagger(TechniqueSettings):
    """Mask the words that a named-entity model tags."""

    sentence: ClassVar[str] = "Mask what a named-entity model tags."
    kind: Literal["entity_tagger"]
    tagger: TaggerSettings = SpacyTagger(kind="spacy")
    labels: dict[str, str | None] | None = None
    """Classes by the model's entity types; ``null`` as a class leaves such words unmasked. ``null`` for the whole
    setting is the shipped mapping. A type of the model that the mapping lacks is an error."""
    spelled_numbers: Literal["keep", "mask"] = "keep"
    """``keep``: numbers and times in words that identify nobody, such as ``two`` and ``last year``, are not masked."""

    def build(self, word_counts: str | None, threads: int) -> "TaggedEntities":
        """Build the technique, with the tagger's model loaded."""
        return TaggedEntities(load_tagger(self.tagger, threads), self.labels, self.spelled_numbers)


class TaggedEntities(Technique):
    """Mask the entities of a tagger by the classes of their types."""

    is_by_line = is_costly = True

    def __init__(
        self,
        tagger: Tagger,
        labels: dict[str, str | None] | None = None,
        spelled_numbers: Literal["keep", "mask"] = "keep",
    ) -> None:
        """``labels``: entity types to classes, ``None`` for the shipped mapping; errors as ``classes_in_force``."""
        self.name, self.languages = tagger.name, tagger.languages
        self._tagger, self._spelled_numbers = tagger, spelled_numbers
        self._classes = classes_in_force(tagger.entity_types, labels, tagger.name)
        self._masked = {name: label for name, label in self._classes.items() if label is not None}
        self._entities: Counter[str] = Counter()
        self._seldom: Counter[str] = Counter()

    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Each line with the words in entities of masked types; a word's longest entity gives its class."""
        for line, spans in self._tagged(lines):
            if not spans:
                yield line, []
                continue
            words = word_spans(line)
            entities = self._of_words(line, words, spans)
            yield line, [self._finding(*words[index], entities[index]) for index in sorted(entities)]

    def explain(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding | KeptWord]]]:
        """Each line with all of its words; the reason names an entity of an unmasked type."""
        for line, spans in self._tagged(lines):
            words = word_spans(line)
            kept: dict[int, str] = {}
            entities = self._of_words(line, words, spans, kept)
            explained: list[Finding | KeptWord] = []
            for index, word in enumerate(words):
                if index in entities:
                    explained.append(self._finding(*word, entities[index]))
                else:
                    explained.append(KeptWord(*word, kept.get(index, f"not tagged by {self.name}")))
            yield line, explained

    def _tagged(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its entities, found in its plain characters, with labels and offsets checked.

        No-break spaces, styled letters and zero-width characters would hide a word from patterns and models.
        """
        read = 0
        waiting: deque[tuple[str, str, list[int] | None]] = deque()

        def counted() -> Iterator[str]:
            nonlocal read
            for line in lines:
                read += 1
                view, places = plain_view(line)
                waiting.append((line, view, places))
                yield view

        returned = 0
        for returned, (view, spans) in enumerate(self._tagger.tag(counted()), start=1):
            line, places = view, None
            while waiting:
                line, asked, places = waiting.popleft()
                if asked == view:
                    break
            if spans:
                self._check(view, spans, self.lines_before + returned)
                self._entities.update(span.label for span in spans)
            if places is not None:
                spans = [replace(span, start=places[span.start], end=places[span.end - 1] + 1) for span in spans]
            yield line, spans
        if read != returned:
            raise ModelError(
                f"{self.name}: the tagger gave {returned} of {read} lines back; the model or its plug-in is damaged"
            )

    def _of_words(
        self, line: str, words: list[tuple[int, int]], spans: list[EntitySpan], kept: dict[int, str] | None = None
    ) -> dict[int, EntitySpan]:
        """The entity of each word by the word's index, masked types only; ``kept`` gets the others' reasons."""
        starts, ends = [start for start, _ in words], [end for _, end in words]
        entities: dict[int, EntitySpan] = {}
        for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
            label = self._classes[span.label]
            touched = range(bisect_right(ends, span.start), bisect_left(starts, span.end))
            reason = ""
            if label is None:
                reason = "a type that stays unmasked"
            elif self._spelled_numbers == "keep" and label in _MAY_BE_HARMLESS and is_harmless(line, words, touched):
                self._seldom["spelled_numbers_unmasked"] += 1
                reason = "unmasked: a number or time in words"
            else:
                self._seldom["entities_without_word"] += not touched
                self._seldom["overlapping_entities"] += any(index in entities for index in touched)
                for index in touched:
                    entities.setdefault(index, span)
            if reason and kept is not None:
                for index in touched:
                    kept.setdefault(index, f"{self._who(span)}, {reason}")
        return entities

    def _finding(self, start: int, end: int, span: EntitySpan) -> Finding:
        source = f"{self.name}/{span.source}" if span.source else self.name
        return Finding(start, end, self._masked[span.label], source, span.score, self._who(span))

    def _who(self, span: EntitySpan) -> str:
        return f"{span.label} by {span.source or self.name}"

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
        """Entity types and their classes, and the number of entities of each type."""
        return {
            "entity_types": self._classes,
            "entities": {name: self._entities[name] for name in self._classes},
            **{name: self._seldom[name] for name in _SELDOM},
        }

    def counters(self) -> list[Counter[Any]]:
        """The counters of entities by type and of rare events."""
        return [self._entities, self._seldom]

    def announcements(self) -> list[str]:
        """One line with the masked entity types, class by class, and the unmasked types."""
        by_class: dict[str, list[str]] = {}
        for entity_type, label in self._masked.items():
            by_class.setdefault(label, []).append(entity_type)
        kept = ", ".join(name for name in self._classes if name not in self._masked) or "none"
        masked = "; ".join(f"{', '.join(types)} -> {label}" for label, types in sorted(by_class.items()))
        numbers = "; numbers and times in words stay unmasked" if self._spelled_numbers == "keep" else ""
        return [f"{self.name}: entity types masked: {masked or 'none'}; unmasked: {kept}{numbers}"]
