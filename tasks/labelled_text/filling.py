"""One sentence of a template, with the spans of its values."""

import random
import re

from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.labelled_text.slots import SLOT_LABELS, Sentence, required_genders
from tasks.labelled_text.template import Template
from tasks.made_up.articles import agree
from tasks.made_up.made_up import MadeUp

_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|[.!?:][\"”']\s+|\n|^[\"“'(]|[.!?:]\s+[\"“'(])\Z")
_CAPITALISED = (None, "DATE", "TIME", "MONEY")
"""Labels whose values are common words or figures; they get a capital at the start of a sentence."""
_ENDS_WITH_ARTICLE = re.compile(r"\b(?:the|a|an|his|her|our|my|their|your) \Z", re.IGNORECASE)


def fill_template(template: Template, made_up: MadeUp, random_numbers: random.Random, number: int = 1) -> LabelledLine:
    """One sentence of a template.

    Every span is exactly the value that was filled in. Two words accompany a value outside its span. One is the article
    of a name ("the Alps"), dropped after an article or a possessive of the template ("our Alps"). The other is the noun
    of a people without a word of its own ("a Swiss citizen").
    """
    sentence = Sentence(made_up, random_numbers, required_genders(template))
    capitals = _starts_with_capitals(template)
    text = ""
    spans: list[LabelledSpan] = []
    for piece in template.pieces:
        if isinstance(piece, str):
            text += piece
            continue
        value, label = sentence.value(piece), SLOT_LABELS[piece.kind]
        before, value, behind = _split_value(value) if label else ("", value, "")
        if before and _ENDS_WITH_ARTICLE.search(text):
            before = ""
        if not before:
            text = agree(text, value)
        if capitals and "lower" not in piece.modifiers and _ENDS_SENTENCE.search(text):
            if before:
                before = before.capitalize()
            elif label in _CAPITALISED:
                value = value[:1].upper() + value[1:]
        text += before
        if label is not None:
            spans.append(LabelledSpan(len(text), len(text) + len(value), label))
        text += value + behind
    return LabelledLine(text, tuple(spans), number, template.identity)


def _split_value(value: str) -> tuple[str, str, str]:
    """Article, value and noun; article and noun may be empty."""
    before = "the " if value.startswith("the ") and len(value) > 4 else ""
    behind = " citizen" if value.endswith(" citizen") else ""
    return before, value[len(before) : len(value) - len(behind)], behind


def _starts_with_capitals(template: Template) -> bool:
    """Whether a template has capitals at the start of its sentences."""
    literals = [piece for piece in template.pieces if isinstance(piece, str)]
    if not isinstance(template.pieces[0], str):
        return any(character.isupper() or character in ".?!" for literal in literals for character in literal)
    return template.pieces[0][:1].isupper() or any(re.search(r"[.!?] [A-Z]", literal) for literal in literals)
