"""Options by which a command is told its masking technique: ``mask``, ``preview`` and ``evaluate-masking``.

Without ``--params`` the settings are the options and the defaults of the settings classes; with it they are those of a
section of ``params.yaml``, and an option goes before them.
"""

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
  vocabulary_threshold  keep the most frequent words of generic text, mask all others; --word-counts or --vocabulary
                        say which these are, else published frequencies of general English
  entity_tagger         mask the names, places, organisations, dates, numbers ... that a model tags;
                        spacy, transformers, presidio, crf: an entity tagger of that kind
  combination           mask what any (union), all (intersection) or most (majority) of several techniques find
"""
RULES = ("union", "intersection", "majority")

_OPTIONS_OF = {
    "allow_list": ("list",),
    "vocabulary_threshold": ("most_frequent", "vocabulary_size", "vocabulary"),
    "entity_tagger": ("tagger", "model", "batch_size", "minimum_score", "spelled_numbers"),
    "combination": ("rule", "part"),
}
"""Options that belong to one kind of technique: with another one they would do nothing, which is an error."""
TECHNIQUE_TEXTS = ("word_counts", "list", "vocabulary")
TECHNIQUE_PATHS = (*TECHNIQUE_TEXTS, "model", "part")
"""Options that name files and folders to read."""
_OF_PARTS = ("vocabulary",)
"""Options that a combination hands on to its parts of their kind."""


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
        lists = [getattr(part, "path", None) for part in (self.settings, *getattr(self.settings, "parts", ()))]
        return [file for file in (self.word_counts, self.vocabulary, *lists) if file]

    @property
    def plain(self) -> dict[str, Any]:
        """The settings as a report records them: how a combination's parts would write markers is no part of it."""
        return self.settings.model_dump(mode="json", exclude={"parts": {"__all__": {"markers"}}})

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
        help=f"one of {', '.join((*TECHNIQUE_KINDS, *TAGGER_KINDS))}; with --params: a key of 'masking:'",
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
    tagger.add_argument("--minimum-score", type=float, metavar="P", help="mask no entity of lower score or probability")
    tagger.add_argument(
        "--spelled-numbers",
        choices=("keep", "mask"),
        help="numbers and times in words that identify nobody ('two', 'last year'): keep (default) or mask",
    )
    combination = parser.add_argument_group("combination")
    combination.add_argument("--rule", choices=RULES, help="what any, all or more than half of the parts find")
    combination.add_argument(
        "--part",
        action="append",
        metavar="KIND[:NAME]",
        help="a technique or tagger, twice or more; NAME: a list file or model; or else its default settings",
    )


def add_marker_options(parser: argparse.ArgumentParser) -> None:
    """How masked words are written; ``chosen_technique`` reads these options where a command has them."""
    parser.add_argument(
        "--marker-style",
        choices=("mask", "class"),
        help="'mask': every marker is [MASK]; 'class': [PERSON], [NUMBER], ... (default: markers.style, else mask)",
    )
    parser.add_argument(
        "--merge-markers",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="one marker for equal ones that only white space separates (default: markers.merge, else no)",
    )


def technique_sections(arguments: argparse.Namespace) -> list[str]:
    """The one section of ``params.yaml`` that the technique is described by."""
    return [f"masking.{arguments.technique}"] if arguments.params else []


def chosen_technique(arguments: argparse.Namespace) -> ChosenTechnique:
    """The technique that the options name; ``ParameterError`` where they do not fit together."""
    from tasks.masking.settings import TechniqueSettings
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import check_settings
    from tasks.spelling import nearest

    threads = 1
    if arguments.params:
        (section,) = technique_sections(arguments)
        read = read_sections(arguments.params, [section, "resources"])
        # Only what the file says: markers that a part has by default are none that a user gave it.
        values = read[section].model_dump(mode="json", exclude_unset=True)
        threads = read["resources"].threads
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
    _set(values, "rule", arguments.rule)
    _set(values, "parts", None if arguments.part is None else [_part(part) for part in arguments.part])
    _refuse_idle_options(arguments, values)
    _set(values, "path", arguments.list)
    _set(values, "kept_words", arguments.most_frequent)
    _set(values, "vocabulary_size", arguments.vocabulary_size)
    if values["kind"] == "entity_tagger":
        tagger = dict(values.get("tagger") or {"kind": "spacy"})
        if arguments.tagger not in (None, tagger["kind"]):
            tagger = {}
        _set(tagger, "kind", arguments.tagger)
        _set(tagger, "model", arguments.model)
        _set(tagger, "batch_size", arguments.batch_size)
        _set(tagger, "minimum_probability" if tagger["kind"] == "crf" else "minimum_score", arguments.minimum_score)
        values["tagger"] = tagger
        _set(values, "spelled_numbers", arguments.spelled_numbers)
    markers = dict(values.get("markers") or {})
    _set(markers, "style", getattr(arguments, "marker_style", None))
    _set(markers, "merge", getattr(arguments, "merge_markers", None))
    settings = check_settings(TechniqueSettings, {**values, "markers": markers}, section)
    return ChosenTechnique(settings, threads, *_word_files(arguments, settings))


def _part(text: str) -> dict[str, Any]:
    """The settings of one ``--part``."""
    from tasks.spelling import nearest

    kind, _, name = text.partition(":")
    allowed = (*TECHNIQUE_KINDS[:3], *TAGGER_KINDS)
    if kind not in allowed:
        raise ParameterError(
            f"--part {text!r}: {kind!r} is none{nearest(kind, allowed)}; allowed: {', '.join(allowed)}"
        )
    if kind == "transformers" and not name:
        raise ParameterError(f"--part {text!r} needs a model: --part transformers:NAME, a hub name or folder")
    if kind == "vocabulary_threshold" and name:
        raise ParameterError(f"--part {text!r}: give the words by --word-counts or --vocabulary")
    if kind == "allow_list":
        return {"kind": kind, **({"path": name} if name else {})}
    if kind == "vocabulary_threshold":
        return {"kind": kind}
    tagger = {"kind": "spacy" if kind == "entity_tagger" else kind, **({"model": name} if name else {})}
    return {"kind": "entity_tagger", "tagger": tagger}


def _refuse_idle_options(arguments: argparse.Namespace, values: dict[str, Any]) -> None:
    """``ParameterError`` for an option that the technique would not heed, and for a combination that is incomplete."""
    kind = values["kind"]
    parts = {part["kind"] for part in values.get("parts") or ()}
    for owner, names in _OPTIONS_OF.items():
        for name in names:
            heeded = owner == kind or (owner in parts and name in _OF_PARTS)
            if getattr(arguments, name) is not None and not heeded:
                raise ParameterError(f"--{name.replace('_', '-')} is for {owner}, not for {kind}")
    if kind == "combination" and not (values.get("rule") and len(values.get("parts") or ()) >= 2):
        raise ParameterError(f"combination needs --rule ({', '.join(RULES)}) and two or more --part KIND")


def _word_files(arguments: argparse.Namespace, settings: Any) -> tuple[str | None, str | None]:
    """Word counts and vocabulary file, where the technique reads them; the graph names the counts for every one."""
    if "vocabulary_threshold" not in {part.kind for part in (settings, *getattr(settings, "parts", ()))}:
        return None, None
    # A vocabulary given by hand goes before the counts that a graph gives to every technique.
    return (None, arguments.vocabulary) if arguments.vocabulary else (arguments.word_counts, None)


def _set(values: dict[str, Any], name: str, value: Any) -> None:
    if value is not None:
        values[name] = value
