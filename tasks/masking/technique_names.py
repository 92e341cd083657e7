"""Techniques by name, where no parameter file describes them: a kind of technique, or a kind of tagger."""

from tasks.errors import ParameterError
from tasks.masking.settings import TechniqueSettings
from tasks.spelling import nearest

TECHNIQUE_KINDS = ("allow_list", "vocabulary_threshold", "entity_tagger", "combination")
TAGGER_KINDS = ("spacy", "transformers", "presidio", "crf")
TECHNIQUES_HELP = """\
Techniques:
  allow_list            keep the words of a list of 5,000 safe common words, mask all others
  vocabulary_threshold  keep the most frequent words of generic text, mask all others; --word-counts or the setting
                        path say which these are, else published frequencies of general English
  entity_tagger         mask the names, places, organisations, dates, numbers ... that a model tags;
                        spacy, transformers, presidio, crf: an entity tagger of that kind
  combination           mask what any (union), all (intersection) or most (majority) of several techniques find
"""


def settings_named(name: str | None) -> dict[str, object]:
    """The settings that a name stands for; ``ParameterError`` with the nearest spelling where it is none."""
    if name in TAGGER_KINDS:
        return {"kind": "entity_tagger", "tagger": {"kind": name}}
    if name in TECHNIQUE_KINDS:
        return {"kind": name}
    known = (*TECHNIQUE_KINDS, *TAGGER_KINDS)
    raise ParameterError(
        f"--technique {name!r} is none{nearest(str(name), known)}; allowed: {', '.join(known)}, or with --params a key "
        "of 'masking:'"
    )


def lists_of(settings: TechniqueSettings) -> list[str]:
    """Files of words that a technique, or a part of it, is told of by its settings."""
    parts = settings.parts if settings.kind == "combination" else [settings]
    return [part.path for part in parts if part.kind != "entity_tagger" and part.path]


def reads_word_counts(settings: TechniqueSettings) -> bool:
    """Whether a technique, or a part of it, goes by the word counts of generic text."""
    parts = settings.parts if settings.kind == "combination" else [settings]
    return any(part.kind == "vocabulary_threshold" and not part.path for part in parts)
