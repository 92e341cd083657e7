"""From settings to a technique that is ready to mask."""

from pathlib import Path

from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import Technique


def load_technique(
    settings: TechniqueSettings, *, word_counts: str | Path | None = None, threads: int = 1
) -> Technique:
    """The technique that one of ``tasks.masking.settings.TechniqueSettings`` describes; loads lists and models.

    ``word_counts`` is generic text's, for the vocabulary threshold; without them, and without a vocabulary in its
    settings, it goes by published frequencies.
    """
    match settings.kind:
        case "allow_list":
            from tasks.masking.lists.allow_list import allow_list

            return allow_list(settings)
        case "vocabulary_threshold":
            from tasks.masking.lists.vocabulary_threshold import vocabulary_threshold

            return vocabulary_threshold(settings, word_counts)
        case "entity_tagger":
            from tasks.masking.taggers.entity_tagger import entity_tagger

            return entity_tagger(settings, threads)
        case "combination":
            from tasks.masking.combination import CombinedTechniques

            parts = [load_technique(part, word_counts=word_counts, threads=threads) for part in settings.parts]
            return CombinedTechniques(parts, settings.rule)
