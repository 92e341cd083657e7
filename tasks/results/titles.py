"""What tables and pages call the methods and techniques of an experiment, in which colour, and what they say of them.

A kind of method or technique says so itself, beside its settings. Here is what has no settings (references, baselines),
and names of ``params.yaml`` that stand for a kind with certain settings. A name of the user's own stays as it is.
"""

from typing import Any, NamedTuple

from tasks.filling.methods import METHODS
from tasks.masking.techniques import TECHNIQUES
from tasks.records.cells import BASELINES, NO_LANGUAGE_MODEL, ORACLE, PRETRAINED


class _Kind(NamedTuple):
    title: str
    colour: int | None = None
    sentence: str = ""


_NAMED = {
    NO_LANGUAGE_MODEL: _Kind("No language model"),
    PRETRAINED: _Kind("Pretrained"),
    ORACLE: _Kind("Oracle"),
    "baseline0": _Kind("Baseline0", 0),
    "baseline1": _Kind("Baseline1", 1),
    "redacted": _Kind("Redacted", sentence="The masked text with its markers taken out; not in the paper."),
    "dropped": _Kind("Lines dropped", sentence="The lines of the masked text without a marker; not in the paper."),
    "top_k_left_to_right": _Kind("Top-K, left to right"),
    "counted": _Kind(
        "Log-linear, noisy counts",
        sentence="The same, with frequencies from noisy counts of the masked words; not in the paper.",
    ),
    "domain_unigram": _Kind(
        "Unigram of the domain",
        sentence="Control: the same, by frequency in a domain like this one; not in the paper.",
    ),
}


_METHODS: dict[str, Any] = {**METHODS, **_NAMED}


def method_name(method: str) -> str:
    """How the paper writes a method; a name of the user's own stays as it is."""
    return (_METHODS[method].title if method in _METHODS else "") or method


_FILLERS = {"minilm": "MiniLM", "smollm2": "SmolLM2"}
_TECHNIQUES = {"every_tagger": "every tagger (union of three)"}


def filler_name(filler: str) -> str:
    """``minilm`` as ``MiniLM``; a name of the user's own is unchanged."""
    return _FILLERS.get(filler, filler)


def cell_label(method: str, filler: str | None) -> str:
    """``Log-linear fill with MiniLM``; ``Surrogate`` for a method without a filler."""
    return method_name(method) + (f" fill with {filler_name(filler)}" if filler else "")


def in_sentence(name: str) -> str:
    """A name inside a sentence: ``Log-linear`` as ``log-linear``, ``Top-K`` and names with digits as they are."""
    word = name.split()[0]
    return name if word[-1].isupper() or any(map(str.isdigit, word)) else name[:1].lower() + name[1:]


def method_colour(method: str) -> int | None:
    """The number of its colour in the style sheet; ``None`` where it has none of its own."""
    return _METHODS[method].colour if method in _METHODS else None


def technique_name(technique: str) -> str:
    """``allow_list`` as ``allow list``."""
    return technique.replace("_", " ")


def technique_phrase(technique: str) -> str:
    """``the allow list``, as a sentence has it."""
    return _TECHNIQUES.get(technique) or f"the {technique_name(technique)}"


def sentence_of(name: str, kind: str) -> str:
    """What the page says of a method or technique, by its name in ``params.yaml`` or else by its kind."""
    known = {**TECHNIQUES, **_METHODS}
    return next((known[each].sentence for each in (name, kind) if each in known and known[each].sentence), "")


def group_of(technique: str | None, method: str, filler: str | None) -> str:
    """What a method is there for: ``reference`` (the recogniser alone, pretrained, Oracle, DP-SGD), ``baseline``
    (no fill), ``control`` (a fill without a filler) or ``fill``."""
    if technique is None:
        return "reference"
    if method in BASELINES:
        return "baseline"
    return "fill" if filler else "control"
