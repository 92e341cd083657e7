"""Titles and descriptions of methods and techniques in tables and pages.

A kind of method or technique has its own, next to its settings. This module has those without settings (references,
baselines), and names of ``params.yaml`` for a kind with certain settings. A user's own name is unchanged.
"""

from typing import Any, NamedTuple

from tasks.filling.methods import METHODS
from tasks.masking.techniques import TECHNIQUES
from tasks.records.cells import BASELINES, NO_LANGUAGE_MODEL, ORACLE, PRETRAINED


class _Kind(NamedTuple):
    title: str
    sentence: str = ""


_NAMED = {
    NO_LANGUAGE_MODEL: _Kind("No language model"),
    PRETRAINED: _Kind("Pretrained"),
    ORACLE: _Kind("Oracle"),
    "baseline0": _Kind("Baseline0"),
    "baseline1": _Kind("Baseline1"),
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
    """The paper's name of a method; a user's own name is unchanged."""
    return (_METHODS[method].title if method in _METHODS else "") or method


_FILLERS = {"minilm": "MiniLM", "smollm2": "SmolLM2"}
_TECHNIQUES = {"every_tagger": "every tagger (union of three)"}


def filler_name(filler: str) -> str:
    """``MiniLM`` for ``minilm``; a user's own name is unchanged."""
    return _FILLERS.get(filler, filler)


def cell_label(method: str, filler: str | None) -> str:
    """``Log-linear fill with MiniLM``; ``Surrogate`` for a method without a filler."""
    return method_name(method) + (f" fill with {filler_name(filler)}" if filler else "")


def in_sentence(name: str) -> str:
    """A name inside a sentence: ``log-linear`` for ``Log-linear``; ``Top-K`` is unchanged, as are digits."""
    word = name.split()[0]
    return name if word[-1].isupper() or any(map(str.isdigit, word)) else name[:1].lower() + name[1:]


def technique_name(technique: str) -> str:
    """``allow list`` for ``allow_list``."""
    return technique.replace("_", " ")


def technique_phrase(technique: str) -> str:
    """``the allow list``, for a sentence."""
    return _TECHNIQUES.get(technique) or f"the {technique_name(technique)}"


def sentence_of(name: str, kind: str) -> str:
    """The page's sentence on a method or technique, by its name in ``params.yaml`` or else by its kind."""
    known = {**TECHNIQUES, **_METHODS}
    return next((known[each].sentence for each in (name, kind) if each in known and known[each].sentence), "")


def group_of(technique: str | None, method: str, filler: str | None) -> str:
    """The role of a method: ``reference`` (the recogniser alone, pretrained, Oracle, DP-SGD), ``baseline`` (no
    fill), ``control`` (a fill without a filler) or ``fill``."""
    if technique is None:
        return "reference"
    if method in BASELINES:
        return "baseline"
    return "fill" if filler else "control"
