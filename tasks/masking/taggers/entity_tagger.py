"""The entity tagger (paper 3.1, ``entityTagger``): mask the words that a named-entity model tags.

A word that an entity touches is masked whole. An entity of several words gives one marker per word, as in the paper,
which masks tokens. Numbers and times in words that identify nobody stay unmasked by default
(``tasks.masking.taggers.spelled_numbers``).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import tee
from typing import ClassVar, Literal

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
        """Each line with its entities, found in its plain characters.

        No-break spaces, styled letters and zero-width characters would hide a word from patterns and models.
        """
        lines, read = tee(lines)
        views, asked = tee(map(plain_view, read))
        tagged = self._tagger.tag(view for view, _ in asked)
        for line, (view, places), (_, spans) in zip(lines, views, tagged, strict=True):
            if any(not 0 <= span.start < span.end <= len(view) for span in spans):
                raise ModelError(f"{self.name}: the model tags a place outside the line. It is damaged. Take another")
            if places is not None:
                spans = [replace(span, start=places[span.start], end=places[span.end - 1] + 1) for span in spans]
            yield line, spans

    def _of_words(
        self, line: str, words: list[tuple[int, int]], spans: list[EntitySpan], kept: dict[int, str] | None = None
    ) -> dict[int, EntitySpan]:
        """The entity of each word by the word's index, masked types only; ``kept`` gets the others' reasons."""
        starts, ends = [start for start, _ in words], [end for _, end in words]
        entities: dict[int, EntitySpan] = {}
        for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
            if span.label not in self._classes:
                raise ModelError(f"{self.name}: the model tags {span.label!r}, which it does not declare; take another")
            label = self._classes[span.label]
            touched = range(bisect_right(ends, span.start), bisect_left(starts, span.end))
            reason = ""
            if label is None:
                reason = "a type that stays unmasked"
            elif self._spelled_numbers == "keep" and label in _MAY_BE_HARMLESS and is_harmless(line, words, touched):
                reason = "unmasked: a number or time in words"
            else:
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

    def announcements(self) -> list[str]:
        """One line with the masked entity types, class by class, and the unmasked types."""
        by_class: dict[str, list[str]] = {}
        for entity_type, label in self._masked.items():
            by_class.setdefault(label, []).append(entity_type)
        kept = ", ".join(name for name in self._classes if name not in self._masked) or "none"
        masked = "; ".join(f"{', '.join(types)} -> {label}" for label, types in sorted(by_class.items()))
        numbers = "; numbers and times in words stay unmasked" if self._spelled_numbers == "keep" else ""
        return [f"{self.name}: entity types masked: {masked or 'none'}; unmasked: {kept}{numbers}"]
