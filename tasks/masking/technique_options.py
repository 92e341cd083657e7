"""Options by which a command is told its masking technique: ``mask``, ``preview`` and ``evaluate-masking``."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.errors import ParameterError

if TYPE_CHECKING:
    from tasks.masking.technique import Technique

TECHNIQUE_KINDS = ("allow_list", "vocabulary_threshold", "entity_tagger", "combination")
TAGGER_KINDS = ("spacy", "transformers", "presidio", "crf")
TECHNIQUES_HELP = """\
Techniques:
  allow_list            keep the words of a list of 5,000 safe common words (or of --list), mask all others
  vocabulary_threshold  keep the most frequent words of generic text, mask all others; needs --word-counts or
                        --vocabulary
  entity_tagger         mask the names, places, organisations, dates, numbers ... that a model tags;
                        spacy, transformers, presidio, crf: an entity tagger of that kind
"""

_OPTIONS_OF = {
    "allow_list": ("list",),
    "vocabulary_threshold": ("most_frequent", "vocabulary_size", "vocabulary"),
    "entity_tagger": ("tagger", "model", "batch_size", "minimum_score"),
}
"""Options that belong to one kind of technique: with another one they would do nothing, which is an error."""


@dataclass(frozen=True)
class ChosenTechnique:
    """What the options and the parameters say."""

    settings: Any
    """One of ``tasks.masking.settings.TechniqueSettings``."""
    threads: int
    word_counts: str | None
    """Counts of generic words, where the technique reads them."""
    vocabulary: str | None
    """Generic words in the order of their frequency, where the technique reads them."""

    @property
    def files(self) -> list[str]:
        """Files that the technique reads."""
        return [file for file in (self.word_counts, self.vocabulary, getattr(self.settings, "path", None)) if file]

    def load(self) -> "Technique":
        """The technique, ready to mask; loads lists and models."""
        from tasks.masking.techniques import load_technique

        return load_technique(
            self.settings, word_counts=self.word_counts, vocabulary=self.vocabulary, threads=self.threads
        )


def add_technique_options(parser: argparse.ArgumentParser) -> None:
    """``--technique``, ``--params`` and the options of each kind."""
    parser.add_argument(
        "--technique",
        required=True,
        metavar="NAME",
        help=f"one of {', '.join(TECHNIQUE_KINDS[:3])}, {', '.join(TAGGER_KINDS)}; with --params: a key of 'masking:'",
    )
    parser.add_argument("--params", metavar="FILE", help="read the technique's settings from a params.yaml")
    parser.add_argument(
        "--word-counts", metavar="FILE", help="counts of generic text's words; vocabulary_threshold alone reads them"
    )
    allow_list = parser.add_argument_group("allow_list")
    allow_list.add_argument("--list", metavar="FILE", help="a list of your own, one word a line")
    threshold = parser.add_argument_group("vocabulary_threshold")
    threshold.add_argument("--vocabulary", metavar="FILE", help="instead of counts: words, the most frequent first")
    threshold.add_argument("--most-frequent", type=int, metavar="N", help="how many words are kept (default: 10000)")
    threshold.add_argument("--vocabulary-size", type=int, metavar="N", help="of how many words (default: 85000)")
    tagger = parser.add_argument_group("entity_tagger")
    tagger.add_argument("--tagger", choices=TAGGER_KINDS, help="library of the model (default: spacy)")
    tagger.add_argument("--model", metavar="NAME", help="installed spaCy pipeline, hub name or folder of the model")
    tagger.add_argument(
        "--batch-size", type=int, metavar="N", help="sentences (spacy, presidio) or windows (transformers) a batch"
    )
    tagger.add_argument("--minimum-score", type=float, metavar="P", help="mask no entity of lower score")


def technique_sections(arguments: argparse.Namespace) -> list[str]:
    """The one section of ``params.yaml`` that the technique is described by."""
    return [f"masking.{arguments.technique}"] if arguments.params else []


def chosen_technique(arguments: argparse.Namespace) -> ChosenTechnique:
    """The technique that the options name; ``ParameterError`` where they do not fit together."""
    from tasks.masking.settings import TechniqueSettings
    from tasks.params import as_plain, check_settings, read_sections
    from tasks.spelling import nearest

    threads = 1
    if arguments.params:
        (section,) = technique_sections(arguments)
        read = read_sections(arguments.params, [section, "resources"])
        values, threads = as_plain(read[section]), read["resources"].threads
    elif arguments.technique in TAGGER_KINDS:
        section, values = "options", {"kind": "entity_tagger", "tagger": {"kind": arguments.technique}}
        if arguments.tagger not in (None, arguments.technique):
            raise ParameterError(f"--technique {arguments.technique} and --tagger {arguments.tagger} contradict")
    elif arguments.technique in TECHNIQUE_KINDS:
        section, values = "options", {"kind": arguments.technique}
    else:
        known = (*TECHNIQUE_KINDS, *TAGGER_KINDS)
        raise ParameterError(
            f"--technique {arguments.technique!r} is none{nearest(arguments.technique, known)}; "
            f"allowed: {', '.join(known)}, or with --params a key of 'masking:'"
        )
    for kind, names in _OPTIONS_OF.items():
        for name in names:
            if getattr(arguments, name) is not None and kind != values["kind"]:
                raise ParameterError(f"--{name.replace('_', '-')} is for {kind}, not for {values['kind']}")
    _set(values, "path", arguments.list)
    _set(values, "kept_words", arguments.most_frequent)
    _set(values, "vocabulary_size", arguments.vocabulary_size)
    if values["kind"] == "entity_tagger":
        tagger = dict(values.get("tagger") or {"kind": "spacy"})
        if arguments.tagger not in (None, tagger["kind"]):
            tagger = {}
        for name in ("model", "batch_size", "minimum_score"):
            _set(tagger, name, getattr(arguments, name))
        _set(tagger, "kind", arguments.tagger)
        values["tagger"] = tagger
    settings = check_settings(TechniqueSettings, values, section)
    return ChosenTechnique(settings, threads, *_word_files(arguments, settings))


def _word_files(arguments: argparse.Namespace, settings: Any) -> tuple[str | None, str | None]:
    """Word counts and vocabulary file, where the technique reads them; the graph names the counts for every one."""
    if settings.kind != "vocabulary_threshold":
        return None, None
    # A vocabulary given by hand goes before the counts that a graph gives to every technique.
    return (None, arguments.vocabulary) if arguments.vocabulary else (arguments.word_counts, None)


def _set(values: dict[str, Any], name: str, value: Any) -> None:
    if value is not None:
        values[name] = value
