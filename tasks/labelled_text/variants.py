"""Variants of a labelled sentence: in other case, without its final mark, in tokenised form, or joined to another."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan

_FINAL = re.compile(r"[.!?…]+\s*\Z")
_SPACED = re.compile(
    r"(?<=\S)(?=[,;:!?)\]\"…](?:[\s,.;:)]|\Z))"  # before a mark that ends a word
    r"|(?<=[(\[\"])(?=\w)"  # after an opening mark
    r"|(?<=\w)(?=\.\Z|\.\s+[A-Z\"])"  # before the full stop of a sentence
    r"|(?<=\w)(?=['’](?:s|m|d|re|ve|ll)\b)|(?<=\w)(?=n['’]t\b)"  # before a clitic
    r"|(?<=[$€£])(?=\d)"  # after a sign of currency
)


def lower_cased(line: LabelledLine) -> LabelledLine:
    """The line in lower case."""
    return _mapped(line, str.lower)


def upper_cased(line: LabelledLine) -> LabelledLine:
    """The line in capitals."""
    return _mapped(line, str.upper)


def unpunctuated(line: LabelledLine) -> LabelledLine:
    """The line without the marks at its end, unless they belong to a value."""
    match = _FINAL.search(line.text)
    if not match or not match.start():
        return line
    end = max([match.start(), *(span.end for span in line.spans)])
    return replace(line, text=line.text[:end])


def spaced(line: LabelledLine) -> LabelledLine:
    """The line in tokenised form: ``Ben 's here , is n't he ?``; spaces never enter a span at its edge."""
    places = [match.start() for match in _SPACED.finditer(line.text) if 0 < match.start() < len(line.text)]
    if not places:
        return line
    text = "".join(
        line.text[start:end] + " " for start, end in zip([0, *places], [*places, len(line.text)], strict=True)
    )[:-1]
    spans = tuple(
        LabelledSpan(
            span.start + sum(place <= span.start for place in places),
            span.end + sum(place < span.end for place in places),
            span.label,
        )
        for span in line.spans
    )
    return replace(line, text=text, spans=spans)


def joined(first: LabelledLine, second: LabelledLine) -> LabelledLine:
    """Two sentences as one line."""
    shift = len(first.text) + 1
    moved = tuple(LabelledSpan(span.start + shift, span.end + shift, span.label) for span in second.spans)
    return LabelledLine(
        f"{first.text} {second.text}", first.spans + moved, first.number, f"{first.template}+{second.template}"
    )


def _mapped(line: LabelledLine, change: Callable[[str], str]) -> LabelledLine:
    """Change the pieces between span edges one by one: a change of case can change the length."""
    edges = sorted({0, len(line.text), *(edge for span in line.spans for edge in (span.start, span.end))})
    moved = {0: 0}
    text = ""
    for start, end in pairwise(edges):
        text += change(line.text[start:end])
        moved[end] = len(text)
    spans = tuple(LabelledSpan(moved[span.start], moved[span.end], span.label) for span in line.spans)
    return replace(line, text=text, spans=spans)
