"""From settings to a technique that is ready to mask."""

from pathlib import Path
from typing import Any

from tasks.masking.technique import Technique


def load_technique(
    settings: Any, *, word_counts: str | Path | None = None, vocabulary: str | Path | None = None, threads: int = 1
) -> Technique:
    """The technique that one of ``tasks.masking.settings.TechniqueSettings`` describes; loads lists and models.

    ``word_counts`` (or ``vocabulary``) is generic text's, for the vocabulary threshold; without either it goes by
    published frequencies.
    """
    match settings.kind:
        case "allow_list":
            from tasks.masking.lists.allow_list import allow_list

            return allow_list(settings)
        case "vocabulary_threshold":
            from tasks.masking.lists.vocabulary_threshold import vocabulary_threshold

            return vocabulary_threshold(settings, word_counts, vocabulary)
        case "entity_tagger":
            from tasks.masking.taggers.entity_tagger import entity_tagger

            return entity_tagger(settings, threads)
        case "combination":
            from tasks.masking.combination import CombinedTechniques

            parts = [
                load_technique(part, word_counts=word_counts, vocabulary=vocabulary, threads=threads)
                for part in settings.parts
            ]
            return CombinedTechniques(parts, settings.rule)
        case _:
            raise ValueError(f"no technique of kind {settings.kind!r}")
